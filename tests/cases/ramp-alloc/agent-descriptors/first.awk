BEGIN { FS = OFS = "\t" }
$1 == "offer" { last = $3; if (choice == "" && $0 !~ /\tcause=/) choice = $3 }
$1 == "ask" { print "answer", $2, choice == "" ? last : choice; fflush(); choice = "" }
