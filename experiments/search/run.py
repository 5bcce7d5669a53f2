"""The job `search`: memory settings or operation rules, searched, selected and tested.

Swept: the settings of a space, or the parameters of a rule of operations. Baseline: the default
setting, or the rule's untuned start and never writing, played on the same test scenarios. The
best of many candidates has an optimistic score on the set that selected it: finalists are selected
again on a validation set, and the final score is measured once on a test set.

    python -m experiments.search
    python -m experiments.search method=rules
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.generation.sets import is_test
from amemgym_env.generation.sets import scenarios as named_scenarios
from experiments.app import hydra_app as job
from experiments.app.composition import compose
from experiments.app.pareto import cost
from experiments.app.run_folder import RunFolder, write
from experiments.app.settings import checked
from experiments.evaluate import run as evaluate
from experiments.evaluate.period_barrier import PeriodBarrier, Report
from experiments.evaluate.settings import EvaluateSettings
from experiments.search.optuna_study import Direction, Range, Study, Tried
from experiments.search.rules import search_rules
from experiments.search.settings import SearchSettings
from experiments.search.tables import print_search

Document = dict[str, Any]
DIRECTIONS: dict[str, Direction] = {"memory": "maximize", "tokens": "minimize"}


def run(settings: SearchSettings) -> Document:
    """Search, select and test; write the folder and return its results."""
    for key in ("train", "validation"):
        if is_test(getattr(settings, key)):
            raise ConfigError(
                f"{key}: expected scenarios without test topics, found "
                f"{getattr(settings, key)!r}; nothing may be searched or chosen on them"
            )
    if settings.method == "rules":
        folder = RunFolder.open(settings.out, "search", settings.identity(), settings.resume)
        document = search_rules(settings)
        write(folder.path / "search.json", json.dumps(document, indent=1))
        return {**document, "folder": str(folder.path)}
    space = [Range.parse(text) for text in settings.space]
    _evaluated(settings, [part.example() for part in space])  # refuses what no trial could be
    directions = [DIRECTIONS[name] for name in settings.objectives]
    if settings.objectives[0] != "memory":
        raise ConfigError("objectives: expected memory first, and tokens beside it or not")
    folder = RunFolder.open(settings.out, "search", settings.identity(), settings.resume)
    study = Study(folder.path / "study.log", directions, settings.seed, settings.prune)
    study.run(settings.trials, space, _objective(settings, folder.path / "trials"))
    finalists = study.best(settings.finalists)
    document = {
        "settings": settings.identity(),
        "candidates": len(study.tried()),
        "trials": [tried._asdict() for tried in study.tried()],
        "finalists": [],
        "chosen": None,
        "test": None,
    }
    if finalists:
        document |= _selected(settings, folder.path, finalists)
    write(folder.path / "search.json", json.dumps(document, indent=1))
    return {**document, "folder": str(folder.path)}


def _evaluated(settings: SearchSettings, words: Sequence[str]) -> EvaluateSettings:
    """Return the settings of an evaluation with a trial's words."""
    return checked(EvaluateSettings, compose("evaluate", [*settings.evaluate, *words]))


def _objective(
    settings: SearchSettings, folder: Path
) -> Callable[[Sequence[str], Report], list[float]]:
    def objective(words: Sequence[str], report: Report) -> list[float]:
        results = _play(settings, words, settings.train, folder, report)
        values = {"memory": results.memory_score, "tokens": cost(results).tokens}
        found = [values[name] for name in settings.objectives]
        return [float("nan") if value is None else value for value in found]

    return objective


def _play(
    settings: SearchSettings,
    words: Sequence[str],
    scenarios: str,
    folder: Path,
    report: Report | None = None,
) -> ResultsFile:
    """Play a setting on a set, or read what was played of it."""
    name = hashlib.sha256(json.dumps([scenarios, *sorted(words)]).encode()).hexdigest()[:12]
    chosen = _evaluated(settings, words)
    changes: Document = {"scenarios": scenarios, "out": str(folder / name)}
    if report is None:
        return evaluate.run(chosen.model_copy(update=changes), quiet=True).results
    number = len(list(named_scenarios(scenarios, chosen.limit)))
    at = chosen.model_copy(update={**changes, "workers": number})
    barrier: evaluate.BarrierMaker = lambda scripts: PeriodBarrier(scripts, report)  # noqa: E731
    return evaluate.run(at, quiet=True, barrier=barrier).results


def _selected(settings: SearchSettings, folder: Path, finalists: Sequence[Tried]) -> Document:
    """Return the finalists on validation, the chosen one, and what it is worth on test."""
    judged = [
        (tried, _play(settings, tried.words, settings.validation, folder / "validation"))
        for tried in finalists
    ]
    ranked = sorted(judged, key=lambda pair: -(pair[1].memory_score or -9.0))
    chosen = ranked[0][0]
    document: Document = {
        "finalists": [
            {
                "words": list(tried.words),
                "train": list(tried.values),
                "validation": found.memory_score,
                "tokens": cost(found).tokens,
            }
            for tried, found in judged
        ],
        "chosen": list(chosen.words),
    }
    if settings.test is None:
        return document
    looks = folder / "test_looks.json"
    seen = json.loads(looks.read_text(encoding="utf-8")) if looks.exists() else []
    if list(chosen.words) not in seen:
        write(looks, json.dumps([*seen, list(chosen.words)], indent=1))
    best = _play(settings, chosen.words, settings.test, folder / "test")
    default = _play(settings, (), settings.test, folder / "test")
    known = {item.id: item for item in named_scenarios(settings.test)}
    scores, baseline = best.memory_scores(known), default.memory_scores(known)
    difference = scores.mean_of_ratios() - baseline.mean_of_ratios()
    document["test"] = {
        "chosen": best.memory_score,
        "default": default.memory_score,
        "chosen_tokens": cost(best).tokens,
        "default_tokens": cost(default).tokens,
        "difference": None if np.isnan(difference) else difference,
        "interval": scores.difference_interval(baseline).to_json(),
        "scenarios": int((~np.isnan(scores.by_user - baseline.by_user)).sum()),
        "looks": len(json.loads(looks.read_text(encoding="utf-8"))),
    }
    return document


def main(composed: Document) -> float | None:
    """Run the job and print its tables; returns the chosen one's score on validation."""
    document = run(checked(SearchSettings, composed))
    print_search(document)
    scores = [item["validation"] for item in document["finalists"]]
    return max((score for score in scores if score is not None), default=None)


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("search", main, check=lambda composed: checked(SearchSettings, composed))
