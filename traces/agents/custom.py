"""An environment of one's own around a cluster, and an agent that learns in it.

CustomEnv says what is observed, what is rewarded, and what an action means: here the action decides into how
many parts the ops of a job are split, and at which end of the cluster it is placed; the ops run shortest
first. Replace the three functions `observe`, `act` and `reward` by your own. The agent has a weight for
each feature of an action; the weights are found by the cross-entropy method, as in train.py. It prints
blocking rates on jobs that it was not trained on: of random actions, of the fewest parts with which a job
meets its deadline, and of the trained agent.
"""
import argparse
import math
import os
import random
import statistics
import sys
from operator import mul

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts")]
import heuristics  # noqa: E402
from rampipe_cluster import Action, RampClusterEnv, Run  # noqa: E402
from rampipe_env import Box, Discrete, array  # noqa: E402
try:
    import gymnasium
except ImportError:
    gymnasium = None

PARTS = (1, 2, 4, 6, 8, 16)
TRIED, BEST = 16, 4  # vectors of weights that a generation tries, and those that make the next one


class CustomEnv(gymnasium.Env if gymnasium else object):
    """Actions: 0 refuses the job; the others are the numbers of ACTIONS."""

    ACTIONS = [None, *((parts, end) for parts in PARTS for end in (0, 1))]

    def __init__(self, **options):
        self.cluster = RampClusterEnv(**options)
        self.places = [heuristics.FirstFit(backwards=bool(end)) for end in (0, 1)]
        self.known = {}  # what actions mean: many jobs find the same graph and the same free servers
        self.action_space = Discrete(len(self.ACTIONS))
        self.observation_space = Box(-math.inf, math.inf, (4,), "float32")

    def observe(self):
        """Servers that are free, as a share; how many times faster than on one server the job must be; how
        much more work it is than the mean of the jobs so far (a logarithm); the share of the servers that
        come free before the deadline."""
        cluster, job = self.cluster, self.cluster.job
        if job is None:
            return array([0.0, 1.0, 0.0, 0.0])
        servers = len(cluster.servers)
        soon = sum(len(run.servers) for run in cluster.running.values() if run.finish - cluster.time < job.deadline)
        mean = statistics.fmean(map(work, cluster.jobs.values()))
        return array([len(cluster.free) / servers, work(job) / job.deadline, math.log(work(job) / mean), soon / servers])

    def act(self, action):
        """The whole action that an action stands for; None: it cannot be placed."""
        cluster, graph = self.cluster, self.cluster.job.graph
        if not self.ACTIONS[action]:
            return None
        key = action, graph.id, *cluster.free
        if key not in self.known:
            parts, end = self.ACTIONS[action]
            op_partition = heuristics.sip_ml(graph, parts)
            placement = self.places[end](graph, op_partition, cluster.free)
            self.known[key] = placement and Action(
                op_partition=op_partition, op_placement=placement,
                op_schedule=heuristics.shortest_first(graph.split(op_partition), placement))
        return self.known[key]

    def reward(self, outcome):
        return 1.0 if isinstance(outcome, Run) else -1.0

    def reset(self, *, seed=None, options=None):
        if gymnasium:
            super().reset(seed=seed)
        self.cluster.reset(seed=seed, options=options)
        return self.observe(), {}

    def step(self, action):
        outcome = self.cluster.step(self.act(action))
        return self.observe(), self.reward(outcome), self.cluster.done, False, {"outcome": outcome}

    def close(self):
        self.cluster.close()


def work(job):
    """Seconds on one server."""
    return job.graph.sequential * job.steps


def features(observation, parts, end):
    free, need, size, soon = map(float, observation)
    return [1.0, float(parts >= need), math.log(parts / need), parts / 16 * free, size, size * soon, end]


def agent(weights):
    """Chooses the action of the best weighted sum, or refuses the job if all are below 0."""
    def choose(env, observation):
        best, action = 0.0, 0
        for a, meaning in enumerate(env.ACTIONS):
            if meaning and (score := sum(map(mul, weights, features(observation, *meaning)))) > best \
                    and env.act(a):
                best, action = score, a
        return action
    return choose


def at_random(draw):
    return lambda env, _: draw.choice([a for a, meaning in enumerate(env.ACTIONS) if meaning and env.act(a)] or [0])


def fewest(env, observation):
    """The fewest parts that meet the deadline if nothing is sent."""
    return next((a for a, meaning in enumerate(env.ACTIONS) if meaning and meaning[0] >= observation[1] and env.act(a)), 0)


def blocking(env, choose, seeds, jobs):
    """The mean blocking rate of episodes with these seeds."""
    rates = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed, options={"jobs": jobs})
        ended = False
        while not ended:
            observation, _, ended, _, _ = env.step(choose(env, observation))
        rates.append(env.cluster.figures()["blocking_rate"])
    return statistics.fmean(rates)


def train(env, draw, jobs, generations):
    """The mean of the weights after the last generation."""
    mean = [0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # of features(): as `fewest`
    spread = [1.5] * len(mean)
    for generation in range(generations):
        seed = draw.getrandbits(31)
        tried = [mean] + [[draw.gauss(m, s) for m, s in zip(mean, spread)] for _ in range(TRIED - 1)]
        tried.sort(key=lambda weights: blocking(env, agent(weights), [seed], jobs))
        columns = list(zip(*tried[:BEST]))
        mean = [statistics.fmean(column) for column in columns]
        spread = [statistics.pstdev(column) + 0.5 * 0.93 ** generation for column in columns]
    return mean


def main():
    parser = argparse.ArgumentParser(description="Trains a small agent in an environment of its own.")
    parser.add_argument("--generations", type=int, default=20, help="generations of the training (default 20)")
    parser.add_argument("--jobs", type=int, default=100, help="jobs of an episode (default 100)")
    parser.add_argument("--interarrival", default="exponential:30",
                        help="distribution of the time between jobs (default exponential:30)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the training (default 1)")
    args = parser.parse_args()

    env = CustomEnv(interarrival=args.interarrival)
    held_out = range(1, 4)
    for name, choose in (("random", at_random(random.Random(1))), ("fewest", fewest)):
        print(f"{name}\t{blocking(env, choose, held_out, args.jobs):.4f}", flush=True)
    weights = train(env, random.Random(args.seed), args.jobs, args.generations)
    print(f"trained\t{blocking(env, agent(weights), held_out, args.jobs):.4f}")
    env.close()


if __name__ == "__main__":
    main()
