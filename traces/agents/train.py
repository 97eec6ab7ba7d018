"""Trains a small agent on scripts/rampipe_env.py in plain Python, and compares it with simple rules.

The agent has a weight for each feature of an alternative. It takes the alternative with the highest
weighted sum of features, and refuses the job if all sums are below 0. The weights are found by the
cross-entropy method (Rubinstein, 1999): each generation draws weights around the mean, tries all of them
on the same jobs, and takes the mean and the spread of the best quarter for the next generation. It
prints blocking rates on jobs that the agent was not trained on.
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

TRIED, BEST = 16, 4  # vectors of weights that a generation tries, and those that make the next one


def blocking(env, choose, seeds, jobs):
    """The mean blocking rate of episodes with these seeds. choose(observation, info) returns the action."""
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
    """The degrees that can start."""
    return [a for a, can_start in enumerate(info["action_mask"]) if a and can_start]


def agent(weights):
    """The function that chooses by these weights. Of equal sums the smallest degree wins."""
    def choose(observation, info):
        best, action = 0.0, 0
        for a in valid(info):
            score = sum(map(mul, weights, observation[a]))
            if score >= best and (score > best or not action):
                best, action = score, a
        return action
    return choose


def at_random(draw):
    """The rule that takes any degree that can start."""
    return lambda _, info: draw.choice(valid(info) or [0])


def first(_, info):
    """The rule that takes the smallest degree that can start."""
    return (valid(info) or [0])[0]


def train(env, draw, jobs, until, generations):
    """Returns the mean of the weights after the last generation, and the number of generations. Noise that
    falls by 5 % a generation is added to the spread: without it the search would stop too early."""
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
    parser.add_argument("--seconds", type=float, default=60, help="seconds of training (default 60)")
    parser.add_argument("--generations", type=float, default=float("inf"), help="limit of generations")
    parser.add_argument("--interarrival", default="exponential:30",
                        help="distribution of the time between jobs (default exponential:30)")
    parser.add_argument("--jobs", type=int, default=300, help="jobs of an episode (default 300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the training (default 1)")
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
