"""README.md and docs/*.md: every example runs, prints what is shown, and every link leads somewhere.

    docs.py FILE...           runs the examples of these files, in the folder `example`
    docs.py --write FILE...   also puts what they print into the files
    docs.py --links FILE...   checks links only

An example is a block of sh. A block of text right behind it is what it prints. A question of
README's table has an example, too. Without EVERY=1 examples that take seconds get a tenth of their
jobs, queries and runs, and what they print is not compared; every second one is run.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.environ["ROOT"]
# Two that take as long as all others together are left to EVERY=1.
LONG = re.compile(r"--rungs 10|--no-job --time-unit s traces/alexnet.txt traces/bert")
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)
ROW = re.compile(r"^\| [^|]*\? \| `(.*?)` \| [^|]* \|$", re.M)


def shorten(script):
    """Fewer jobs, queries and runs, the small models of the samples, one generation."""
    if os.environ.get("EVERY"):
        return script
    script = re.sub(r"(--(?:jobs|queries|runs) [0-9]{2,})0\b", r"\1", script) \
        if "--tune" not in script else script  # a plan of few queries takes any rate for its own
    return script.replace("traces/*.txt", "traces/[arv]*.txt").replace(
        "--generations 2", "--generations 1")


def examples(text):
    """(script, what it prints or None, where that stands; None: it answers a question)."""
    for found in BLOCK.finditer(text):
        yield found[1], found[2], found.span(2)
    for found in ROW.finditer(text):
        yield found[1].replace("\\|", "|") + "\n", None, None


def run(script, folder):
    """What it prints, as it runs in a fresh clone with the tools on the PATH."""
    shutil.rmtree(os.path.join(folder, "build"), ignore_errors=True)
    os.mkdir(os.path.join(folder, "build"))
    # head closes the pipe early, which is no failure
    strict = "set -e\n" if re.search(r"\| head\b", script) else "set -eo pipefail\n"
    done = subprocess.run(["bash", "-c", strict + script], cwd=folder, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}:\n{script}{done.stderr}")
    left = sorted(os.listdir(folder))
    if left != ["build", "docs", "scripts", "traces"]:
        sys.exit(f"it leaves files, {left}:\n{script}")
    return done.stdout


def check(path, folder, write):
    text = open(path).read()
    changes = []
    count = 0
    every = write or os.environ.get("EVERY")
    for turn, (script, shown, place) in enumerate(examples(text)):
        if turn % 2 and not every:
            continue
        if LONG.search(script) and not (os.environ.get("EVERY") or write):
            continue
        short = script if write else shorten(script)
        printed = run(short, folder)
        count += 1
        if place is None and not printed:
            sys.exit(f"{path}: a question without an answer:\n{script}")
        if write and shown is not None:
            changes.append((*place, printed))
        elif shown is not None and short == script and printed != shown:
            sys.exit(f"{path}: it prints something else:\n{script}---- shown\n{shown}"
                     f"---- printed\n{printed}")
    for start, end, printed in reversed(changes):
        text = text[:start] + printed + text[end:]
    if write:
        open(path, "w").write(text)
    print(f"{path}: {count} examples")


def heading_id(line):
    """As GitHub makes it."""
    text = re.sub(r"[^\w\- ]", "", line.lstrip("# ").strip().lower())
    return text.replace(" ", "-")


def check_links(path):
    text = open(path).read()
    for target in re.findall(r"\]\(([^)]*)\)", text):
        if re.match(r"https?://", target):
            continue
        name, _, part = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(file):
            sys.exit(f"{path}: ({target}) leads nowhere")
        if part and part not in map(heading_id, re.findall(r"^#+ .*", open(file).read(), re.M)):
            sys.exit(f"{path}: ({target}): there is no such heading")


def main(*names):
    write = "--write" in names
    paths = [os.path.join(ROOT, name) for name in names if not name.startswith("--")]
    for path in paths:
        check_links(path)
    if "--links" in names:
        return
    folder = os.path.abspath("example")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    for part in "traces", "scripts", "docs":
        shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part),
                        ignore=shutil.ignore_patterns("__pycache__"))
    for path in paths:
        check(path, folder, write)
    for part in "traces", "scripts", "docs":
        subprocess.run(["diff", "-rx", "__pycache__", os.path.join(ROOT, part), part], cwd=folder,
                       check=not write)


main(*sys.argv[1:])
