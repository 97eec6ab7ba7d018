#!/bin/bash
# A worker of runtasks, for tests: each call is a command of this shell. Its last status is the
# answer's; $result, if it is set, what it gave. $n counts the calls of this worker, $inputs are the
# results of others, a ; between two. say() answers with something else.
say() {
    # shellcheck disable=SC2059
    printf "$@" >&"$RAMPIPE_WORKER"
    said=1
}
n=0
while IFS= read -r -u "$RAMPIPE_WORKER" line; do
    IFS=$'\t' read -r _ id text inputs <<<"$line"
    text=${text//%25/%} inputs=${inputs//$'\t'/;}
    unset result said
    n=$((n + 1))
    eval "$text"
    status=$?
    [ -n "${said-}" ] || say 'end\t%s\t%s%s\n' "$id" "$status" "${result+$'\t'result=$result}"
done
