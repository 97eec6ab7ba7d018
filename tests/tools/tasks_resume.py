"""Random lists of tasks that change, runs of them that are killed, and files that change between
runs, against running the last list one task after the other.

    tasks_resume.py SEED COUNT    exit status 1: a run with --resume ended with status 0, and a
                                  file is not what it should be; the seed is said

A run may be refused only where what a task reads has been overwritten, and nobody makes it: files
of the beginning, g0 and g1, that tasks write. Each task writes half of a file, waits, and writes
the whole. d/ is read as a whole; what is in it is written by tasks, which make it.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GIVEN = ["g0", "g1", "e0"]  # e0 is never written
FILES = ["f0", "f1", "f2", "d/a", "d/b"]


class Task:
    def __init__(self, draw, name):
        self.name = name
        self.change(draw)

    def change(self, draw):
        self.reads = draw.sample(GIVEN + FILES, draw.randint(0, 3))
        if draw.random() < 0.15:
            self.reads.append("d/")
        self.writes = draw.sample(GIVEN[:2] + FILES * 2, draw.randint(1, 2))
        self.writes = sorted(set(self.writes))
        self.salt = draw.randint(0, 10**6)
        self.pause = draw.choice([0, 0, 0.002, 0.006])

    def command(self):
        read = " ".join(r + "*" if r == "d/" else r for r in self.reads)
        half = "for f in %s; do echo half >>$f; done; sleep %g; " % (" ".join(self.writes), self.pause)
        return "x=$(cat %s /dev/null 2>/dev/null | cksum); %sfor f in %s; do echo %s-%d $x $f >$f; done" % (
            read, half if self.pause else "", " ".join(self.writes), self.name, self.salt)

    def record(self):
        return "\t".join(["task", self.name, "inf", ",".join(self.reads) or "-", ",".join(self.writes),
                          "sh -c '%s'" % self.command()])


def files_of(folder):
    found = {}
    for name in GIVEN + FILES:
        try:
            with open(os.path.join(folder, name)) as file:
                found[name] = file.read()
        except FileNotFoundError:
            pass
    return found


def put(folder, files):
    os.makedirs(os.path.join(folder, "d"))
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def sequentially(folder, tasks, files):
    put(folder, files)
    script = "\n".join("(" + t.command().replace("sleep", ": sleep") + ")" for t in tasks)
    subprocess.run(["sh", "-c", script], cwd=folder, check=True)
    return files_of(folder)


def mutate(draw, tasks, fresh):
    what = draw.random()
    if what < 0.35 and tasks:
        draw.choice(tasks).salt += 1
    elif what < 0.5 and tasks:
        draw.choice(tasks).change(draw)
    elif what < 0.6 and len(tasks) > 1:
        tasks.remove(draw.choice(tasks))
    elif what < 0.7:
        tasks.insert(draw.randint(0, len(tasks)), Task(draw, fresh()))
    elif what < 0.78 and tasks:
        draw.choice(tasks).name = fresh()
    elif what < 0.86 and len(tasks) > 1:
        i, k = draw.sample(range(len(tasks)), 2)
        tasks[i], tasks[k] = tasks[k], tasks[i]


def scenario(seed, folder):
    draw = random.Random(seed)
    names = iter("t%d" % i for i in range(1000))
    fresh = lambda: next(names)
    tasks = [Task(draw, fresh()) for _ in range(draw.randint(2, 8))]
    base = {name: "given " + name + "\n" for name in GIVEN if draw.random() < 0.8}
    got = os.path.join(folder, "got")
    put(got, base)
    whole = True  # the last run was; what a killed one left in a file may be half of it
    for turn in range(draw.randint(2, 6)):
        if turn:
            for _ in range(draw.choice([0, 1, 1, 2])):
                mutate(draw, tasks, fresh)
            if draw.random() < 0.3:  # somebody changes or removes a file
                name = draw.choice(FILES + ["e0"] if whole else ["e0"])
                path = os.path.join(got, name)
                base.pop(name, None)
                if draw.random() < 0.4:
                    if os.path.exists(path):
                        os.unlink(path)
                else:
                    with open(path, "w") as file:
                        file.write("changed %d\n" % turn)
                    base[name] = "changed %d\n" % turn
        written = {w for t in tasks for w in t.writes}
        now = files_of(got)
        for name in GIVEN + FILES:  # what nobody writes is what it is
            if name not in written:
                base.pop(name, None)
                if name in now:
                    base[name] = now[name]
        with open(os.path.join(folder, "tasks.rec"), "w") as out:
            out.write("\n".join(t.record() for t in tasks) + "\n")
        kill = draw.random() < 0.5
        run = subprocess.Popen(["runtasks", "-j3", "--brief", "--resume", "../log", "../tasks.rec"], cwd=got,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if kill:
            time.sleep(draw.uniform(0.002, 0.06))
            run.send_signal(signal.SIGKILL)
        said = run.communicate()[1]
        whole = run.returncode == 0
        if whole:
            right = os.path.join(folder, "right%d" % turn)
            want = sequentially(right, tasks, base)
            have = files_of(got)
            if want != have:
                print("seed %d, run %d: wrong:" % (seed, turn + 1))
                for name in sorted(set(want) | set(have)):
                    if want.get(name) != have.get(name):
                        print("  %s: %r, should be %r" % (name, have.get(name), want.get(name)))
                return None
        elif run.returncode == 3:
            lost = [n for n in GIVEN[:2] + FILES if repr(n)[1:-1] in said]
            if not lost:
                print("seed %d, run %d: refused: %s" % (seed, turn + 1, said))
                return None
            return "refused"
        elif not kill:
            print("seed %d, run %d: status %d: %s" % (seed, turn + 1, run.returncode, said))
            return None
    return "right"


first, count = int(sys.argv[1]), int(sys.argv[2])
results = {}
for seed in range(first, first + count):
    folder = tempfile.mkdtemp(dir=os.environ.get("BATS_TEST_TMPDIR", "/dev/shm"))
    result = scenario(seed, folder)
    results[result] = results.get(result, 0) + 1
    if result is None and len(sys.argv) < 4:
        print("  in", folder)
        sys.exit(1)
    shutil.rmtree(folder)
print(results)
sys.exit(None in results)
