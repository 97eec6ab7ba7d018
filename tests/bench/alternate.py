#!/usr/bin/env python3
"""Processor time of commands, which run in turn: A B A B ... usage: alternate.py ROUNDS COMMAND...

A line a command: the median of its processor time, seconds (user and system, of all its processes), and its peak
memory, MB (of its largest process). What the machine does besides takes elapsed time, and comes and goes; so
elapsed times of one command after the other compare little. Tools and pipes of tools are started directly, other
commands by bash. Their output is dropped."""
import os
import shlex
import statistics
import sys


def start(words, to, source):
    actions = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, to, 1)]
    return os.posix_spawnp(words[0], words, os.environ, file_actions=actions)


def run(command):
    """The processor time (s) and the peak memory (kB)."""
    if set(command) & set("$;&<>(){}\"'`*?[]\\~!#\n") or "||" in command:
        stages = [["bash", "-o", "pipefail", "-c", command]]
    else:
        stages = [shlex.split(stage) for stage in command.split("|")]
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    source, running = nothing, []
    for i, words in enumerate(stages):
        last = i == len(stages) - 1
        following, to = (None, nothing) if last else os.pipe()  # (O_CLOEXEC)
        running.append(start(words, to, source))
        for fd in {source, to} - {nothing}:
            os.close(fd)
        source = following
    os.close(nothing)
    spent, peak = 0.0, 0
    for pid in running:
        _, status, usage = os.wait4(pid, 0)
        if status != 0:
            sys.exit(f"alternate.py: it failed: {command}")
        spent += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss)
    return spent, peak


def main(rounds, commands):
    runs = [[] for _ in commands]
    for turn in range(rounds):
        order = range(len(commands))
        for i in order if turn % 2 == 0 else reversed(order):  # none is always behind the same other
            runs[i].append(run(commands[i]))
    for each in runs:
        spent = statistics.median(spent for spent, _ in each)
        print(f"{max(spent, 1e-6):.6f} {max(peak for _, peak in each) / 1024:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
