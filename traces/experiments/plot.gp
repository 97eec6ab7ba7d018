# gnuplot -e "input='load.tsv'; what='blocking'" plot.gp >blocking.svg
set terminal svg size 900,500 font "sans,14" background "white" dynamic name what
set datafile separator "\t"
set datafile missing "-"
set colorsequence podo
set logscale x
set grid
set key outside right top title system("head -n 1 ".input." | cut -f 1,2 | tr '\t' '@'") noenhanced
set xlabel "mean time between arrivals, s (load falls to the right)"
curves = system(sprintf("awk -F'\t' 'NR > 1 && !seen[$1 FS $2]++ { print $1 \"@\" $2 }' %s", input))
if (what eq "blocking") {
    set title "Jobs blocked (bars: one standard error)"
    set ylabel "blocking rate"
    set yrange [0:1]
    mean = 5
} else { if (what eq "slowdown") {
    set title "A step over the same step alone, mean over jobs (bars: one standard error)"
    set ylabel "mean slowdown"
    set yrange [1:*]
    mean = 9
} else { if (what eq "tail") {
    set title "A step over the same step alone, 99th percentile of jobs (bars: one standard error)"
    set ylabel "slowdown, 99th percentile"
    set yrange [1:*]
    mean = 11
} else {
    set title "Completion time of the jobs accepted (bars: one standard error)"
    set ylabel "mean completion time, s"
    set yrange [0:*]
    mean = 7
} } }
plot for [c in curves] \
    sprintf("< awk -F'\t' -v OFS='\t' '$1 \"@\" $2 == \"%s\" { sub(/.*:/, \"\", $3); print }' %s", c, input) \
    using 3:mean:(column(mean + 1)) with yerrorlines linewidth 2 title c noenhanced
