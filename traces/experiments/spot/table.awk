# Reads figures of metrics, a file for each chance of removal (REMOVAL.tsv), and writes the published
# table: as text with means and standard errors, or as TSV with means, standard errors and deviations.
BEGIN {
    FS = OFS = "\t"
    n = split("preempted instances|time between preemptions|lifetime of an instance|" \
              "fatal failures|published instances|published performance|published cost|" \
              "published value|useful share|value / on-demand", metric, "|")
    split("preemptions|interval, h|lifetime, h|fatal|instances|samples/s|US$/h|value|useful, %|x on demand", \
          title, "|")
    split("preemptions interval_h lifetime_h fatal instances performance cost value useful against_on_demand", \
          column, " ")
    split("1 3600 3600 1 1 1 1 1 1 1", unit, " ")
    split("2 4 3 3 2 2 3 4 2 3", digits, " ")
}
FNR == 1 {
    removal = FILENAME
    sub(/.*\//, "", removal)
    sub(/\.tsv$/, "", removal)
    order[++files] = removal
    next
}
$1 == "all" && $2 == "runs" { runs[removal] = $4 }
$1 == "all" && $2 == "runs short of their steps" { short[removal] = $4 }
# The standard error and the deviation of a single run are nan.
$1 == "all" && $3 ~ /^(mean|se|sd)$/ && $4 != "nan" { figure[removal, $2, $3] = $4 }
END {
    if (what == "tsv") {
        printf "removal\truns"
        for (i = 1; i <= n; i++) printf "\t%s\t%s_se\t%s_sd", column[i], column[i], column[i]
        print ""
    } else {
        printf "%-8s %7s", "removal", "runs"
        for (i = 1; i <= n; i++) printf " %18s", title[i]
        print ""
    }
    for (f = 1; f <= files; f++) {
        r = order[f]
        if (what == "tsv") printf "%s\t%s", r, runs[r]
        else printf "%-8s %7d", r, runs[r]
        for (i = 1; i <= n; i++) {
            u = unit[i]
            mean = figure[r, metric[i], "mean"] / u
            se = figure[r, metric[i], "se"] / u
            if (what == "tsv")
                printf "\t%.10g\t%.10g\t%.10g", mean, se, figure[r, metric[i], "sd"] / u
            else {
                if (metric[i] == "useful share") { mean *= 100; se *= 100 }
                printf " %18s", sprintf("%.*f +- %.*f", digits[i], mean, digits[i], se)
            }
        }
        print ""
        if (short[r] > 0)
            printf "table.awk: %d runs of removal %s are short of their steps: raise MINUTES\n", \
                short[r], r > "/dev/stderr"
    }
}
