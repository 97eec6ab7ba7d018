# Writes a line for each curve and load, with means and standard errors over the seeds. ARGV[1] is a file
# of task records. The tasks write the figures of one seed each, .../X@Y/INTERARRIVAL/SEED.tsv (no @ in Y).
# The variables x and y give the names of the columns X and Y. Where jobs slow each other there are four more columns.
BEGIN {
    FS = OFS = "\t"
    while ((getline <ARGV[1]) > 0)
        if ($1 == "task" && $5 ~ /\.tsv$/) ARGV[ARGC++] = $5
    ARGV[1] = ""
    head = x OFS y "\tinterarrival\tseeds\tblocking\tblocking_se\tcompletion\tcompletion_se"
}
FNR == 1 {
    n = split(FILENAME, part, "/")
    at = match(part[n - 2], /@[^@]*$/)
    key = substr(part[n - 2], 1, at - 1) "\t" substr(part[n - 2], at + 1) "\t" part[n - 1]
    if (!(key in seeds)) order[++keys] = key
    seeds[key]++
}
$2 ~ /^blocking rate( at least)?$/ && $3 ~ /^(value|mean)$/ { add("b", $4) }
# The mean is nan if no job was accepted; it is left out.
$2 == "completion time" && $3 == "mean" && $4 != "nan" { add("c", $4) }
$2 == "slowdown" && $4 != "nan" && ($3 == "mean" || $3 == "p99") { add($3 == "mean" ? "s" : "t", $4); slowed = 1 }
function add(what, x) { n_[what, key]++; sum[what, key] += x; square[what, key] += x * x }
function mean(what, k) { return n_[what, k] ? sum[what, k] / n_[what, k] : 0 }
function error_of(what, k,   n, v) {
    n = n_[what, k]
    if (n < 2) return 0
    v = (square[what, k] - sum[what, k] ^ 2 / n) / (n - 1)
    return v > 0 ? sqrt(v / n) : 0
}
function both(what, k) { return n_[what, k] ? sprintf("%.9g\t%.3g", mean(what, k), error_of(what, k)) : "-\t-" }
END {
    print head (slowed ? "\tslowdown\tslowdown_se\tslowdown_p99\tslowdown_p99_se" : "")
    for (i = 1; i <= keys; i++) {
        k = order[i]
        printf "%s\t%d\t%.9g\t%.3g\t%s%s\n", k, seeds[k], mean("b", k), error_of("b", k), both("c", k),
            slowed ? "\t" both("s", k) "\t" both("t", k) : ""
    }
}
