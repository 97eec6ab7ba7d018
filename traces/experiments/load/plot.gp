# gnuplot -e "input='load.tsv'; what='blocking'" plot.gp >blocking.svg
set terminal svg size 800,500 font "sans,14" background "white" dynamic name what
set datafile separator "\t"
set datafile missing "-"
set colorsequence podo
set logscale x
set grid
set key outside right top title "policy"
set xlabel "mean time between arrivals, s (load falls to the right)"
policies = "none min max sip-ml-8 acceptable-jct"
if (what eq "blocking") {
    set title "Jobs blocked"
    set ylabel "blocking rate"
    set yrange [0:1]
    mean = 4
} else {
    set title "Completion time of the jobs accepted"
    set ylabel "mean completion time, s"
    set yrange [0:*]
    mean = 6
}
# lines in order of the time between arrivals, whatever the order of the file
plot for [p in policies] \
    sprintf("< awk -F'\t' '$1 == \"%s\"' %s | sort -t'\t' -g -k2", p, input) \
    using 2:mean:(column(mean + 1)) with yerrorlines linewidth 2 title p
