# Agents: processes that decide for ramp-alloc. An agent that does what a built-in chooser does gives the
# same bytes. Whatever an agent does, the run ends, reports it, and leaves no process behind.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    pd2graph --time-unit s --no-job "$ROOT"/traces/{alexnet,vgg16}.txt |
        tracegen jobs --jobs 200 --interarrival exponential:1000 --deadline-fraction uniform:0.2:2 >drawn.rec
    partition --policy max --max-degree 4 --quantum 0.01 drawn.rec >jobs.rec
    partition --policy all --max-degree 4 --quantum 0.01 drawn.rec >ascending.rec
    pd2graph "$ROOT"/traces/{alexnet,vgg16}.txt | partition --policy all --max-degree 2 >few.rec
    # The built-in choosers, written as agents in awk and in Python.
    cat >chooser.awk <<'A'
BEGIN { FS = OFS = "\t" }
function starts() { return $0 !~ /\tcause=/ }
function better() { return best == "" || (rule == "fastest" && $7 < finish) ||
                           (rule == "fewest-servers" && $5 < servers) }
$1 == "offer" { n++; graph[n] = last = $3; degree[n] = $4
                if (starts() && better()) { best = $3; finish = $7; servers = $5 } }
$1 == "ask" { answer = best == "" ? last : best
              if (rule == "first-degree") {
                  match($0, /\tfree=[0-9]+/); free = substr($0, RSTART + 6, RLENGTH - 6) + 0
                  for (i = 1; i <= n && degree[i] + 0 > free; i++);
                  answer = i > n ? "-\tcause=no_servers" : graph[i] }
              print "answer", $2, answer; fflush(); best = ""; n = 0 }
A
    cat >chooser.py <<'P'
import sys
rule, offers = sys.argv[1], []
for line in sys.stdin:
    type, *f = line.rstrip("\n").split("\t")
    if type == "offer":
        offers.append(f[1:])
    elif type == "ask":
        free = int(next(k for k in f if k.startswith("free="))[5:])
        startable = [o for o in offers if not any(k.startswith("cause=") for k in o)]
        if rule == "first-degree":
            answer = next((o[0] for o in offers if int(o[1]) <= free), "-\tcause=no_servers")
        else:
            key = {"first": lambda o: 0, "fastest": lambda o: float(o[4]),
                   "fewest-servers": lambda o: int(o[2])}[rule]
            answer = min(startable, key=key)[0] if startable else offers[-1][0]
        print("answer", f[0], answer, sep="\t", flush=True)
        offers = []
P
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }

same_as_built_in() { # rule input option...: by agents in awk and Python
    local rule=$1
    shift
    ramp-alloc --shape 2x2x1 --choose "$rule" "$@" | grep -v '^#@' >built-in
    for agent in "mawk -W interactive -v rule=$rule -f chooser.awk" "python3 chooser.py $rule"; do
        ramp-alloc --shape 2x2x1 --agent "$agent" "$@" | grep -v '^#@' | cmp - built-in || return
    done
}

@test "agents: every heuristic as a process gives the bytes of the one built in" {
    for rule in first first-degree fastest fewest-servers; do
        same_as_built_in $rule jobs.rec || { echo "$rule"; return 1; }
        [ "$(grep -c '^block' built-in)" -ge 50 ]
        [ "$(grep -c '^alloc' built-in)" -ge 50 ]
        same_as_built_in $rule ascending.rec || { echo "$rule, ascending"; return 1; }
    done
}

# A refused job has the cause policy only if it could have started or waited. The agent in awk is that of
# docs/agents.md.
@test "agents: one that refuses what cannot start gives the bytes of first, causes and all" {
    cat >refuses.awk <<'A'
BEGIN { FS = OFS = "\t" }
$1 == "offer" && !/cause=/ && !graph { graph = $3 }
$1 == "ask" { print "answer", $2, graph ? graph : "-" said; fflush(); graph = "" }
A
    refusing() { ramp-alloc --shape 2x2x1 --agent "mawk -W interactive -v said='$1' -f refuses.awk" "${@:2}"; }
    ramp-alloc --shape 2x2x1 ascending.rec | grep -v '^#@' >first
    for said in '' '\tcause=policy'; do
        refusing "$said" ascending.rec | grep -v '^#@' | cmp - first
    done
    [ "$(grep -c '^block.*no_\(block\|servers\)' first)" -ge 40 ]
    # with a queue the refused jobs could have waited
    refusing '' --queue 3 ascending.rec | grep '^block' >queue
    [ "$(grep -c 'policy' queue)" -ge 40 ]
    # and a job that could start, but is refused, has the cause policy
    ramp-alloc --shape 2x2x1 --agent "$(answering 'answer\t%s\t-')" few.rec | grep '^block' | cut -f 4 | sort -u >refused
    [ "$(cat refused)" = policy ]
}

@test "agents: and with a queue, where jobs wait and are asked about again" {
    for rule in first first-degree fastest fewest-servers; do
        same_as_built_in $rule jobs.rec --queue 5 --down 0-0-0 --order shortest || { echo "$rule"; return 1; }
        awk -F'\t' '$1 == "job" { at[$2] = $4 } $1 == "alloc" && $5 > at[$2] { n++ }
            END { exit n < 5 }' built-in
    done
}

# wrong STATUS MESSAGE COMMAND: this agent ends the run with this status and message, a regular expression.
wrong() {
    local status=0
    ramp-alloc --agent-timeout "${timeout:-9}" --agent "$3" few.rec >out 2>err || status=$?
    [ "$status" = "$1" ] || { echo "status $status: $3"; cat err; return 1; }
    # the message has the line of the job if the agent's answer is wrong
    grep -q "^ramp-alloc: \(few.rec:[0-9]*: \)*agent '.*: $2" err || { echo "not '$2': $3"; cat err; return 1; }
    [ "$(tail -n 1 out)" != '#end' ] || { echo "it looks whole: $3"; return 1; }
}
# An agent that answers every ask with $1, and runs the awk code $2 at the end of its input.
answering() { echo "mawk -W interactive '\$1 == \"ask\" { printf \"$1\\n\", \$2; fflush() } END { $2 }'"; }

@test "agents: one that dies is an error of input and output" {
    wrong 4 "it ended with exit status 3 before the last decision" 'exit 3'
    wrong 4 "it died of SIGSEGV" 'kill -SEGV $$'
    wrong 4 "it ended with exit status 0" 'sed /^ask/q >/dev/null'
    wrong 4 "it ended with exit status 127" './no-such-agent 2>/dev/null'
    wrong 4 "it ended with exit status 5 after the last decision" "$(answering 'answer\t%s\t-' 'exit 5')"
}

@test "agents: one that is late, or closes an end of it" {
    timeout=0.2
    wrong 4 "it took longer than 0.2 s" 'cat >/dev/null'
    wrong 4 "it took longer than 0.2 s" 'sleep 60'
    wrong 4 "it took longer than 0.2 s" "$(answering 'answer\t%s\t-'); sleep 60"
    timeout=1 wrong 4 "it has not ended within 1 s after the last decision" \
        "$(answering 'answer\t%s\t-'); exec >&-; sleep 60"
    timeout=9
    wrong 4 "it closed its output" 'exec >&-; sleep 60'
    wrong 4 "it closed its input" 'while read -r type job rest; do
        case $type in ask) exec <&-; printf "answer\t$job\t-\n"; sleep 60 ;; esac; done'
}

@test "agents: one that floods" {
    wrong 3 "it \(wrote a line that is not an answer\|answered before it was asked\)" 'yes'
    wrong 3 "it \(wrote [0-9]* bytes without an answer\|answered before\)" 'cat /dev/zero'
    wrong 3 "it wrote [0-9]* bytes without an answer" 'yes "# wait"'
    timeout=1 wrong 4 "it took longer than 1 s" "$(answering 'answer\t%s\t-'); yes '# still here'"
    wrong 3 "it answered before it was asked" "$(answering 'answer\t%s\t-'); cat /dev/zero"
    wrong 3 "it \(answered before it was asked\|wrote a line that is not an answer\)" "$(answering 'answer\t%s\t-\nanswer')"
    wrong 3 "it answered before it was asked" "$(answering 'answer\t%s\t-'); cat /dev/zero | tr '\\0' '#'"
}

@test "agents: one that answers nonsense" {
    wrong 3 "it answered for another job" "$(answering 'answer\tx%s\t-')"
    wrong 3 "it chose something that is not an alternative of the job" "$(answering 'answer\t%s\talexnet')"
    wrong 3 "it wrote a line that is not an answer; right is" "$(answering 'alloc\t%s\talexnet/1')"
    wrong 3 "it wrote a line that is not an answer" "$(answering 'answer\t%s')"
    wrong 3 "its answer has a field too many" "$(answering 'answer\t%s\t-\tpolicy')"
    wrong 3 "cause= is neither policy nor no_servers" "$(answering 'answer\t%s\t-\tcause=x')"
}

@test "agents: comments, other keys, ends of lines of other systems are no nonsense" {
    ramp-alloc --agent "$(answering '#rampipe\t1\n\n# x\nanswer\t%s\talexnet/2\tscore=1\r' 'print "#end"')" \
        few.rec | cut -f 1-3 | grep "^alloc	alexnet	alexnet/2$"
}

@test "agents: nothing of one is left, whatever ends the run" {
    # the agent is a shell with a child; it writes both process ids to descriptor 9, and never reads
    slow='trap "" TERM; echo $$ >&9; sleep 60 & echo $! >&9; wait; sleep 60'
    gone() {
        for pid in $(cat pids); do
            [ ! -e "/proc/$pid" ] || grep -q '^State:.Z' "/proc/$pid/status" || { ps -fp "$pid"; return 1; }
        done
        [ "$(wc -l <pids)" = 2 ]
    }
    if ramp-alloc --agent-timeout 0.5 --agent "$slow" few.rec 9>pids >/dev/null 2>&1; then return 1; fi
    gone
    for signal in TERM INT PIPE; do
        : >pids
        env --default-signal ramp-alloc --agent "$slow" few.rec 9>pids >/dev/null 2>&1 &
        while [ "$(wc -l <pids)" != 2 ]; do sleep 0.01; done
        kill -$signal $!
        wait $! || true
        for ((i = 0; i < 100; i++)); do gone >/dev/null && break || sleep 0.01; done
        gone
    done
}

# Orphans of ramp-alloc are adopted by the Python process (a subreaper), which must find none.
@test "agents: no zombie, of one or of what it started" {
    for agent in "yes '#' | sleep 60" 'sleep 60 & exit 1' "$(answering 'answer\t%s\t-')"; do
        python3 -c '
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
subprocess.run(["ramp-alloc", "--agent-timeout", "0.2", "--agent", sys.argv[1], "few.rec"],
               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
try:
    print("left:", os.waitpid(-1, os.WNOHANG))
    sys.exit(1)
except ChildProcessError:
    pass' "$agent" || { echo "$agent"; return 1; }
    done
}

@test "agents: a reader that goes away ends all quietly" {
    run bash -c "ramp-alloc --agent '$(answering 'answer\t%s\t-' | sed "s/'/'\\\\''/g")' jobs.rec 2>err | head -n 1 >/dev/null
        echo \${PIPESTATUS[0]}; cat err"
    [ "$output" = 0 ] || [ "$output" = 141 ]
}

@test "agents: descriptors must be open, and not 0 to 2; choosers exclude each other" {
    for wrong in fd:0,4 fd:3,1 fd:3 fd:3,4,5 fd:x,4 fd:30,40; do
        run -2 ramp-alloc --agent "$wrong" few.rec 3</dev/null 4>/dev/null
        [[ $output == *"two descriptors that are open, from 3 on, got '$wrong'" ]]
    done
    run -2 ramp-alloc --agent cat --choose first few.rec
    run -2 ramp-alloc --agent-timeout 3 few.rec
    run -2 ramp-alloc --agent '' few.rec
    run -2 ramp-alloc --agent cat --agent-timeout 0 few.rec
    run -4 ramp-alloc --agent fd:3,4 few.rec 3</dev/null 4>/dev/null
    [[ $output == *"agent 'fd:3,4', job 'alexnet': it closed its output" ]] || [[ $output == *"agent 'fd:3,4': it closed its output" ]]
}
