"""Tuning of baselines on training scenarios."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import Ints
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv
from amemgym_env.policies.features import Floats
from amemgym_env.seeding import generator
from experiments.baselines import rules as baselines
from experiments.baselines.benchmark import PolicyBenchmark, PolicyFn, Scores, play
from experiments.baselines.oracles import exposes
from experiments.baselines.rules import HAND_NAMES, HAND_SIZE, ExposureClassifier, HandRule, Weights


def best_of(candidates: list[PolicyFn], bench: PolicyBenchmark) -> PolicyFn:
    """Return the candidate that scores best on a benchmark."""
    means = [float(bench.score(choose).mean()) for choose in candidates]
    return candidates[int(np.argmax(means))]


def hand_rule(
    bench: PolicyBenchmark, candidates: int = 1000, seed: int = 0, elite: float = 0.15
) -> HandRule:
    """Return the best hand rule of a cross-entropy search, ten rounds of candidates.

    Candidates play side by side: environment (c, row) plays candidate c on a row of the bench.
    """
    random = generator("hand rule", seed)
    size, rows = max(1, candidates // 10), bench.size
    mean, spread = _start(), np.ones(HAND_SIZE)
    best: tuple[float, Weights] = (-1.0, mean)
    for _ in range(10):
        drawn = mean + spread * random.normal(size=(size, HAND_SIZE))
        scores = _scores(bench, drawn, rows)
        order = np.argsort(-scores)[: max(2, int(elite * size))]
        if scores[order[0]] > best[0]:
            best = (float(scores[order[0]]), drawn[order[0]])
        mean = drawn[order].mean(axis=0)
        spread = drawn[order].std(axis=0) + 0.02
    finalists = [HandRule(weights) for weights in (best[1], mean, _start())]
    return max(finalists, key=lambda rule: float(bench.score(rule).mean()))


def untuned() -> HandRule:
    """Return the initial rule of searches: write openers, update similar entries."""
    return HandRule(_start())


def _start() -> Weights:
    start = np.zeros(HAND_SIZE)
    start[0] = 1.0  # openers
    start[len(HAND_NAMES)] = 0.5
    start[len(HAND_NAMES) + 3] = 0.6
    start[len(HAND_NAMES) + 5] = 0.5
    return start


def _scores(bench: PolicyBenchmark, candidates: Weights, rows: int) -> Scores:
    chunk = max(1, 8192 // rows)
    found = []
    for first in range(0, len(candidates), chunk):
        part = candidates[first : first + chunk]
        env, observation = bench.begin(rows=np.tile(np.arange(rows), len(part)))
        rule = HandRule(np.repeat(part, rows, axis=0))
        found.append(play(env, observation, rule).reshape(len(part), rows).mean(axis=1))
    return np.concatenate(found)


def exposure_data(bench: PolicyBenchmark) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the features of every message of a bench, (n, columns), and whether it exposes."""
    seen: list[Floats] = []
    labels: list[npt.NDArray[np.bool_]] = []
    columns = bench.pool.rows.shape[2]

    def watch(env: BaseMemoryVectorEnv, observation: Floats) -> Ints:
        alive = ~env.episodes.over()
        seen.append(observation[alive, :columns])
        labels.append(exposes(env)[alive])
        return baselines.never(env, observation)

    bench.score(watch)
    return np.concatenate(seen), np.concatenate(labels)


def exposure_classifier(
    bench: PolicyBenchmark, hidden: int = 32, epochs: int = 12, seed: int = 0
) -> ExposureClassifier:
    """Return a classifier of exposures: one hidden layer (0: none), trained by Adam."""
    inputs, labels = exposure_data(bench)
    random = generator("exposure classifier", seed)
    x, y = inputs.astype(np.float64), labels.astype(np.float64)
    centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-3
    x = (x - centre) / scale
    sizes = [x.shape[1], *([hidden] if hidden else []), 1]
    values = [
        part
        for before, after in pairwise(sizes)
        for part in (random.normal(size=(before, after)) / np.sqrt(before), np.zeros(after))
    ]
    first = [np.zeros_like(part) for part in values]
    second = [np.zeros_like(part) for part in values]
    step = 0
    for epoch in range(epochs):
        rate = 3e-3 * (1 - epoch / epochs)
        for batch in np.array_split(random.permutation(len(x)), max(1, len(x) // 256)):
            step += 1
            for place, slope in enumerate(_slopes(values, x[batch], y[batch])):
                first[place] += 0.1 * (slope - first[place])
                second[place] += 0.001 * (slope**2 - second[place])
                mean = first[place] / (1 - 0.9**step)
                spread = np.sqrt(second[place] / (1 - 0.999**step)) + 1e-8
                values[place] = values[place] - rate * mean / spread
    # The scaling becomes part of the first layer.
    values[1] = values[1] - (centre / scale) @ values[0]
    values[0] = values[0] / scale[:, None]
    layers = tuple(zip(values[::2], values[1::2], strict=True))
    return ExposureClassifier(layers, x.shape[1])


def _slopes(values: list[Weights], x: Weights, y: Weights) -> list[Weights]:
    """Return the gradient of the cross entropy with weight decay."""
    hidden = [x]
    for place in range(0, len(values) - 2, 2):
        hidden.append(np.maximum(hidden[-1] @ values[place] + values[place + 1], 0.0))
    logits = (hidden[-1] @ values[-2] + values[-1])[:, 0]
    error = ((1 / (1 + np.exp(-logits)) - y) / len(y))[:, None]
    slopes: list[Weights] = []
    for place in range(len(values) - 2, -1, -2):
        below = hidden[place // 2]
        slopes = [below.T @ error + 1e-4 * values[place], error.sum(axis=0), *slopes]
        error = (error @ values[place].T) * (below > 0)
    return slopes
