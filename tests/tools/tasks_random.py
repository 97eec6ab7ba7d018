"""Random programs of tasks that really write files.

    tasks_random.py SEED TASKS FILES    writes task records; run one after the other they
                                        leave f0, f1, ... in the folder

Each task puts a sum of what it reads into what it writes; some write what they read.
"""
import random
import sys

seed, tasks, files = map(int, sys.argv[1:])
draw = random.Random(seed)
for i in range(files + tasks):
    if i < files:  # whatever is read was written
        reads, writes = [], ["f%d" % i]
    else:
        reads = ["f%d" % f for f in draw.sample(range(files), draw.randint(0, 3))]
        writes = ["f%d" % f for f in draw.sample(range(files), draw.randint(1, 2))]
    pause = "sleep 0.00%d; " % draw.randint(1, 4) if draw.random() < 0.2 else ""
    command = "%sx=$(cat %s </dev/null | cksum); for f in %s; do echo t%d $x $f >$f; done" % (
        pause, " ".join(reads), " ".join(writes), i)
    names = [",".join("./x/../" + n if draw.random() < 0.2 else n for n in l) or "-"
             for l in (reads, writes)]
    print("task", "t%d" % i, "inf", *names, "sh -c '%s'" % command, sep="\t")
