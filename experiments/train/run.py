"""Can managing a memory be learned? Trains policies, and measures all baselines beside them.

Swept: seeds. Baselines: the best hand rule without hidden information, a supervised writer, and
policies that are told the truth (`baselines.py`, `truth.py`). What is trained on must hold no test
topics; the test set is looked at once, when training is over.

    python -m experiments.train
    python -m experiments.train env=slots algorithm=maskable_ppo seeds=5
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from amemgym_env.errors import ConfigError
from amemgym_env.generation.sets import is_test
from amemgym_env.policies import checkpoint as policies
from amemgym_env.policies.checkpoint import Policy
from amemgym_env.policies.features import FeatureSet
from amemgym_env.version import VERSION
from experiments.app import hydra_app as job
from experiments.app.run_folder import RunFolder, write
from experiments.app.settings import checked
from experiments.baselines.benchmark import Bench, Scores, chooser, shuffled
from experiments.train import plot as curve_picture
from experiments.train import results as train_results
from experiments.train.baseline_scores import PLANNING, SUPERVISED, Tuned, scored, tuned
from experiments.train.learning_curve import Curve
from experiments.train.progress import Say, TrainProgress
from experiments.train.settings import TrainSettings
from experiments.train.trainer import Learner

GROUPS = ("algorithm",)
_V1_SCRIPTS = 8
"""Scripts a scenario of v1.base, which has few scenarios."""
_TUNING = 128
"""Scripts on which baselines are tuned."""
_SLOW = frozenset({PLANNING})


def run(settings: TrainSettings) -> dict[str, Any]:
    """Train what settings describe, write the run's folder, and return the results."""
    needed = ("torch", "stable_baselines3", "sb3_contrib", *["tensorboard"] * settings.tensorboard)
    absent = [name for name in needed if not find_spec(name)]
    if absent:
        raise ConfigError(
            f"training needs {', '.join(absent)}, found none; install the extra: "
            "pip install -e '.[train]' (without a GPU, the CPU build of PyTorch before)"
        )
    for name in ("scenarios", "validation"):
        if is_test(getattr(settings, name)):
            raise ConfigError(
                f"{name}: expected scenarios without test topics, found "
                f"{getattr(settings, name)!r}; nothing may be trained or tuned on them"
            )
    features = FeatureSet(question_blind=settings.question_blind)
    shared: dict[str, Any] = {
        "difficulty": settings.difficulty,
        "quiet_messages": settings.quiet_messages,
        "features": features,
    }
    progress = TrainProgress(settings.steps * settings.seeds)
    say = progress.say
    say(f"making {settings.validation} ready, which chooses the best checkpoint")
    validation = Bench(settings.validation, **shared)
    say(f"making {settings.scenarios} ready: {settings.pool_size} scripts to train on")
    training = Bench(settings.scenarios, limit=settings.limit, size=settings.pool_size, **shared)
    # Whatever cannot be is refused before a folder is made.
    Learner(settings, settings.seed, Path(), training, validation, None).begun()
    folder = RunFolder.open(settings.out, "train", settings.identity(), settings.resume)
    rules = tuned(training.head(_TUNING), settings.hand_candidates, settings.planning, say)
    say("scoring the baselines on validation")
    lines = {
        name: float(scores.mean())
        for name, scores in scored(rules.choosers, validation, _SLOW).items()
    }
    write(folder.path / "baselines.json", json.dumps({"validation": lines}, indent=1))
    curves = _trained(settings, folder.path, training, validation, rules, progress)
    document = curve_picture.data(curves, lines)
    title = f"{settings.env}, {settings.algorithm.name}, difficulty {settings.difficulty}"
    picture = curve_picture.draw(document, lines, folder.path, title)
    results = {
        "settings": settings.identity(),
        "versions": {"amemgym_env": VERSION, "features": features.key},
        **_final(settings, folder.path, curves, rules, shared, say),
        "picture": str(picture),
    }
    folder.save_results(results)
    return {**results, "folder": str(folder.path)}


def _trained(
    settings: TrainSettings,
    folder: Path,
    training: Bench,
    validation: Bench,
    rules: Tuned,
    progress: TrainProgress,
) -> list[Curve]:
    """Train every seed, side by side or one by one; return their curves."""
    seeds = list(range(settings.seed, settings.seed + settings.seeds))
    # What imitates goes to another process as its examples would: policies of plain arrays.
    teacher = rules.slots_writer if settings.env == "slots" else rules.choosers[SUPERVISED]
    if settings.workers > 1 and settings.seeds > 1:
        progress.say(f"training {settings.seeds} seeds, {settings.workers} side by side")
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(settings.workers, settings.seeds), context) as pool:
            _JOB.update(
                settings=settings,
                folder=folder,
                training=training,
                validation=validation,
                teacher=teacher,
            )
            return list(pool.map(_in_child, seeds))
    curves = []
    for number, seed in enumerate(seeds):
        progress.say(f"seed {seed}: training, warm start: {settings.warm_start}")
        with progress:
            report = progress.of(number, seed, settings.steps)
            given = (settings, folder, training, validation, teacher, seed, report)
            curves.append(_one(*given, say=progress.say))
    return curves


def _silent(doing: str) -> None:
    """Say nothing: several speak at once."""


_JOB: dict[str, Any] = {}
"""What forked workers take over; closures do not pickle."""


def _in_child(seed: int) -> Curve:
    return _one(**_JOB, seed=seed, report=lambda steps, score: None)


def _one(
    settings: TrainSettings,
    folder: Path,
    training: Bench,
    validation: Bench,
    teacher: Any,
    seed: int,
    report: Callable[[int, float], None],
    say: Say = _silent,
) -> Curve:
    begin = None if settings.warm_start == "none" else teacher
    learner = Learner(settings, seed, folder / f"seed-{seed}", training, validation, begin)
    return learner.run(report, say)


def _final(
    settings: TrainSettings,
    folder: Path,
    curves: list[Curve],
    rules: Tuned,
    shared: Mapping[str, Any],
    say: Say,
) -> dict[str, Any]:
    """Score the best checkpoints and all baselines on the sets that nothing was tuned on."""
    found = [
        policies.load(folder / f"seed-{seed}" / "best")
        for seed in range(settings.seed, settings.seed + settings.seeds)
    ]
    sets: dict[str, Bench] = {}
    if settings.test is not None:
        say(f"making {settings.test} ready, which nothing was tuned on")
        sets["test"] = Bench(settings.test, **shared)
    if settings.v1 is not None:
        say("making v1.base ready")
        sets["v1.base"] = Bench(
            settings.v1,
            scripts=_V1_SCRIPTS,
            **{**shared, "quiet_messages": settings.v1_quiet_messages},
        )
    seeds: dict[str, list[Scores]] = {}
    baselines: dict[str, dict[str, Scores]] = {}
    controls: dict[str, Scores] = {}
    for name, bench in sets.items():
        say(f"scoring policy and baselines on {name}")
        seeds[name] = [bench.score(chooser(policy), settings.env) for policy in found]
        if PLANNING in rules.choosers:
            say(f"planning with the truth on {name}, the slowest baseline")
        baselines[name] = scored(rules.choosers, bench, frozenset())
        if name == "test":
            controls = _controls(bench, found, rules, settings)
    return train_results.final(seeds, baselines, controls, curves)


def _controls(
    bench: Bench, found: list[Policy], rules: Tuned, settings: TrainSettings
) -> dict[str, Scores]:
    """Return the policies with features shuffled between environments, and the best mix."""
    blind = [
        bench.score(shuffled(chooser(policy), number), settings.env)
        for number, policy in enumerate(found)
    ]
    mixes = {name: bench.score(choose) for name, choose in rules.mixes.items()}
    best = max(mixes, key=lambda name: float(mixes[name].mean()))
    mean: Scores = np.mean(blind, axis=0)
    return {"features shuffled": mean, f"best constant mix ({best})": mixes[best]}


def main(composed: dict[str, Any]) -> float | None:
    """Run one job and print its tables; returns the mean on validation, for sweeps."""
    settings = checked(TrainSettings, composed)
    document = run(settings)
    train_results.show(document, f"policy ({settings.algorithm.name})", document["folder"])
    return float(np.mean([seed["validation"] for seed in document["seeds"]]))


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("train", main, GROUPS)
