# reccheck accepts all streams that tools write, and refuses all that they refuse. The streams are the files of the
# cases. (stages.bats checks the output of every stage on the samples, unit/test_deletion every change of a line.)

setup() { trap - DEBUG; cd "$ROOT/tests/cases" || exit; }
# True for every second file; with EVERY=1, as in CI, for each.
is_turn() {
    turn=$((${turn-0} + 1))
    [ -n "${EVERY-}" ] || [ $((turn % 2)) = 1 ]
}

@test "valid: reccheck accepts every whole stream that a case shows" {
    streams=0
    for file in */*/expout; do
        # a case that runs its tool twice shows two streams, which need not go together
        [ "$(head -c 8 "$file")" = '#rampipe' ] && [ "$(tail -n 1 "$file")" = '#end' ] &&
            [ "$(grep -c '^#rampipe' "$file")" = 1 ] && is_turn && ! grep -qvP '^(#|[a-z]+\t)' "$file" || continue
        reccheck -q "$file" >/dev/null
        streams=$((streams + 1))
    done
    echo "$streams streams"
    [ "$streams" -ge 10 ]
}

# Messages about errors that reccheck cannot see without the cluster: which servers there are, what they hold, how
# long transfers take. The expressions match the whole message after file and line.
clusters="the rule '(servers are of the cluster|one job at a time on a server|the memory of a server)"
clusters+="|racks as communication groups|more than a number holds|longer than a number holds"
# Messages about streams that are valid, but not for this tool.
other="no trace, add or preempt|neither started nor blocked|the stream has (jobs|no graphs|a cluster)"
other+="|no model record|a second model|has no config|there is no stage to serve|no queries came"

# The streams that the cases of a tool hold, and those that its tables of edits make of one, in $BATS_TEST_TMPDIR.
streams_of() {
    local case edit n=0
    find "$1" -mindepth 2 -maxdepth 2 -type f '(' -name 'in.*' ! -name '*.[tc]sv' -o -name '*.rec' ')' | sort
    for case in $(grep -l "^done <<'EDITS'" "$1"/*/cmd); do
        while IFS= read -r edit; do
            n=$((n + 1))
            (cd "${case%/cmd}" && sed "${edit#*|}" in.rec) >"$BATS_TEST_TMPDIR/${1%/*}-$n.rec"
            echo "$BATS_TEST_TMPDIR/${1%/*}-$n.rec"
        done < <(sed -n "/<<'EDITS'/,/^EDITS/{//!p}" "$case")
    done
}

@test "valid: reccheck refuses the streams of cases that a tool refuses, and no other" {
    profile=$ROOT/traces/redundant/bert.tsv both=0
    for of in sim ramp-alloc partition metrics sim-redundant sim-elastic sim-serve tracegen-* ramp-alloc-*; do
        case $of in
        sim-redundant) tool=(sim redundant --profile "$profile") ;;
        sim | ramp-alloc | partition | metrics) tool=("$of") ;;
        *) tool=("${of%-*}" "${of##*-}") ;;
        esac
        for file in $(streams_of "$of"); do
            is_turn || continue
            theirs=0 ours=0
            "${tool[@]}" "$file" >/dev/null 2>"$BATS_TEST_TMPDIR/why" || theirs=$?
            reccheck "$file" >/dev/null 2>"$BATS_TEST_TMPDIR/ours" || ours=$?
            if [ $theirs = 3 ] && grep -qE "$clusters|$other" "$BATS_TEST_TMPDIR/why"; then
                continue
            elif [ $theirs = 3 ] && [ $ours != 3 ] || [ $theirs = 0 ] && [ $ours != 0 ]; then
                echo "${tool[*]} ends with $theirs, reccheck with $ours:"
                cat "$BATS_TEST_TMPDIR/why" "$BATS_TEST_TMPDIR/ours"
                return 1
            fi
            both=$((both + (theirs == 3)))
        done
    done
    echo "$both refused by both"
    [ "$both" -ge 30 ]
}
