# gnuplot -e "input='table.tsv'" plot.gp >table.svg
set terminal svg size 900,420 font "sans,14" background "white" dynamic name "spot"
set datafile separator "\t"
set colorsequence podo
set grid
set logscale x
set xtics (0.01, 0.05, 0.1, 0.25, 0.5)
set xrange [0.008:0.65]
set xlabel "chance that an instance is taken within an hour"
set multiplot layout 1,2
set ylabel "samples/s"
set yrange [0:*]
unset key
set title "Performance (bars: one standard deviation)"
plot input using "removal":"performance":"performance_sd" with yerrorlines linewidth 2
set title "Value against on-demand instances (bars: likewise)"
set ylabel "times that of on-demand instances"
plot input using "removal":"against_on_demand":"against_on_demand_sd" with yerrorlines linewidth 2
unset multiplot
