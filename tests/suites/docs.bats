# README.md and docs/*.md: every example runs as a stranger would paste it and prints what is shown,
# every link leads somewhere. tests/tools/docs.py runs them, and `--write` puts in what they print.

export PYTHONDONTWRITEBYTECODE=1
setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
examples() { python3 "$ROOT/tests/tools/docs.py" "$@"; }

@test "docs: README answers each question of its table, and fits on a page" {
    examples README.md
    [ "$(wc -l <"$ROOT/README.md")" -le 180 ]
    [ "$(grep -c '^| [^|]*? | `' "$ROOT/README.md")" -ge 10 ]
}

@test "docs: jobs, models" { examples docs/jobs.md docs/models.md; }
@test "docs: collectives" { examples docs/collectives.md; }
@test "docs: spot, serving" { examples docs/spot.md docs/serving.md; }
@test "docs: tasks, agents" { examples docs/tasks.md docs/agents.md; }
@test "docs: records, stages, words" { examples docs/records.md docs/stages.md docs/words.md; }
@test "docs: training, accuracy" { examples docs/training.md docs/accuracy.md; }
@test "docs: networks" { examples docs/networks.md; }

@test "docs: every page is tested, opens with a question, and is reached from README" {
    cd "$ROOT"
    for page in docs/*.md; do
        grep -q "examples.* $page" tests/suites/docs.bats
        [[ $(head -n 1 "$page") == "# "*"?" ]]
        grep -qF "($page)" README.md
    done
    examples --links README.md HACKING.md docs/*.md traces/README.md traces/policies/README.md
}

@test "docs: what is shown and is not printed, a link to nowhere are found" {
    REAL=$ROOT
    mkdir -p root/traces root/scripts root/docs
    printf '```sh\necho 1\n```\n```text\n2\n```\n' >root/shown.md
    printf '[x](nowhere.md)\n' >root/link.md
    printf '| Why? | `true` | nothing |\n' >root/question.md
    for page in shown link question; do
        ROOT=$PWD/root run python3 "$REAL/tests/tools/docs.py" $page.md
        [ "$status" = 1 ] && [[ $output == *"$page.md"* ]]
    done
}
