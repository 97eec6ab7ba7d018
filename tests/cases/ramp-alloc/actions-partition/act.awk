# says the lines of acts about the job that is asked about
BEGIN { OFS = "\t"; while ((getline <"acts") > 0) { $1 = $1; said[$2] = said[$2] $0 "\n" }; FS = "\t" }
$1 == "ask" { printf "%s", said[$2]; fflush() }
