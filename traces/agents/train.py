"""Trains a small agent on scripts/rampipe_env.py, in Python alone, and compares it with others.

The agent has a weight for each feature of an alternative. It takes the alternative with the highest
weighted sum, and refuses the job if all are below 0. Its weights are found by the cross-entropy
method: each generation tries weights around the mean on the same jobs, and the best quarter of them
make the next mean and spread. What is printed are blocking rates, on jobs that it was not trained on.
"""
import argparse
import os
import random
import statistics
import sys
import time
from operator import mul

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from rampipe_env import RampipeEnv  # noqa: E402

TRIED, BEST = 16, 4  # weights in a generation


def blocking(env, choose, seeds, jobs):
    """The mean over episodes, one a seed."""
    rates = []
    for seed in seeds:
        observation, info = env.reset(seed=seed, options={"jobs": jobs})
        ended, blocked = False, 0
        while not ended:
            observation, reward, ended, _, info = env.step(choose(observation, info))
            blocked += reward < 0
        rates.append(blocked / jobs)
    return statistics.fmean(rates)


def valid(info):
    return [a for a, can_start in enumerate(info["action_mask"]) if a and can_start]


def agent(weights):
    def choose(observation, info):
        best, action = 0.0, 0
        for a in valid(info):
            score = sum(map(mul, weights, observation[a]))
            if score >= best and (score > best or not action):
                best, action = score, a
        return action
    return choose


def at_random(draw):
    return lambda _, info: draw.choice(valid(info) or [0])


def first(_, info):
    return (valid(info) or [0])[0]


def train(env, draw, jobs, until, generations):
    """The mean after the last generation, and how many there were."""
    mean = [float(name == "one") for name in env.feature_names]
    spread = [0.5] * len(mean)
    done = 0
    while done < generations and time.monotonic() < until:
        seed = draw.getrandbits(31)
        tried = [mean] + [[draw.gauss(m, s) for m, s in zip(mean, spread)] for _ in range(TRIED - 1)]
        tried.sort(key=lambda weights: blocking(env, agent(weights), [seed], jobs))
        columns = list(zip(*tried[:BEST]))
        noise = 0.2 * 0.95 ** done
        mean = [statistics.fmean(column) for column in columns]
        spread = [statistics.pstdev(column) + noise for column in columns]
        done += 1
    return mean, done


def main():
    parser = argparse.ArgumentParser(description="Trains a small agent, and compares it with others.")
    parser.add_argument("--seconds", type=float, default=60, help="of training (default 60)")
    parser.add_argument("--generations", type=float, default=float("inf"), help="at most so many")
    parser.add_argument("--interarrival", default="exponential:30", help="of jobs (default exponential:30)")
    parser.add_argument("--jobs", type=int, default=300, help="of an episode (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="of training (default 1)")
    args = parser.parse_args()

    draw = random.Random(args.seed)
    env = RampipeEnv(observation="features", mask="startable", interarrival=args.interarrival)
    held_out = range(1, 6)
    for name, choose in (("random", at_random(random.Random(1))), ("first", first)):
        print(f"{name}\t{blocking(env, choose, held_out, args.jobs):.4f}", flush=True)
    weights, generations = train(env, draw, args.jobs, time.monotonic() + args.seconds, args.generations)
    print(f"trained\t{blocking(env, agent(weights), held_out, args.jobs):.4f}\t{generations} generations")
    env.close()


main()
