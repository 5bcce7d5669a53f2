"""The job `sensitivity`: effect of prompt wordings and of the user's words on scores.

Question: how far does a score move when only the wording of the prompts changes, or only the user?
Swept: wordings (folders of templates), with the first user; users (the script's words, paraphrases
with the same exposed values, another model), with the first wording. Baselines: the first wording
with the first user, and the spread of one variant between seeds. A smaller difference between
memories may be an effect of prompts.

    python -m experiments.sensitivity scenarios=base

The simulated model does not read a prompt's wording: its answer is "not modelled", with a count of
the cells that differ. Paraphrases are modelled: each utterance is understood, noted and retrieved
with its own random draws.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from amemgym_env.envs.rewards import Floats
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.statistics import mean_interval
from amemgym_env.prompts.assistant import KINDS
from amemgym_env.prompts.base import Templates
from experiments.app import hydra_app as job
from experiments.app.composition import compose
from experiments.app.run_folder import numbered, write
from experiments.app.settings import CONF, Count, Settings, checked
from experiments.app.terminal import terminal
from experiments.evaluate import run as evaluate
from experiments.evaluate.settings import EvaluateSettings
from experiments.report.compare import Metric, Run, compare
from experiments.sensitivity.paraphrased_user import ParaphrasedUser, paraphrased

Document = dict[str, Any]
BUILT_IN_NAME = "built-in"
NOT_MODELLED = "not modelled"


class SensitivitySettings(Settings):
    """Settings of the job; conf/sensitivity.yaml says what they mean."""

    scenarios: str
    limit: Count | None
    evaluate: list[str]
    wordings: Annotated[list[str | None], Field(min_length=1)]
    users: Annotated[list[str], Field(min_length=1)]
    seeds: Count
    seed: int
    metric: Metric
    out: str | None


class Variant(NamedTuple):
    """One wording with one user."""

    wording: str | None
    user: str

    def name(self, axis: str) -> str:
        """Return what the table calls it."""
        return self.user if axis == "user" else self.wording or BUILT_IN_NAME

    @property
    def draw(self) -> int | None:
        """Which redrawing of the user's words it is; None for any other user."""
        found = re.fullmatch(r"redrawn-([1-9]\d*)", self.user)
        return int(found[1]) if found else None


def composed(settings: SensitivitySettings, variant: Variant, seed: int) -> EvaluateSettings:
    """Return the settings of one evaluation.

    Raises:
        ConfigError: a wording or user does not exist, or the words do not fit.
    """
    words = [*settings.evaluate]
    if variant.user == "script" or variant.draw is not None:
        words.append("user_backend=simulated")
    elif "=" in variant.user:
        words += shlex.split(variant.user)
    else:
        raise ConfigError(
            "users: expected script, redrawn-1, redrawn-2, ... or settings of evaluate such as "
            f"'user_backend=litellm user_backend.model=MODEL', found {variant.user!r}"
        )
    templates = None if variant.wording is None else _folder(variant.wording)
    changes = {
        "scenarios": settings.scenarios,
        "limit": settings.limit,
        "seed": seed,
        "templates": templates,
    }
    return checked(EvaluateSettings, {**compose("evaluate", words), **changes})


def _folder(wording: str) -> str:
    """Return the folder of a wording: one's own, or one of conf/prompt_wordings by its name."""
    shipped = CONF / "prompt_wordings" / wording
    folder = Path(wording) if Path(wording).is_dir() or not shipped.is_dir() else shipped
    Templates.from_folder(folder, KINDS)
    return str(folder)


def played(settings: EvaluateSettings, variant: Variant) -> ResultsFile:
    """Return the results of one variant under one seed; a finished run is read, not played."""
    draw = variant.draw
    if draw is None:
        return evaluate.run(settings, quiet=True).results
    change = evaluate.Variation(
        variant.user,
        lambda scenario: paraphrased(scenario, draw),
        lambda script: ParaphrasedUser(script, draw),
    )
    return evaluate.run(settings, quiet=True, variation=change).results


def row(
    axis: str, variant: Variant, documents: Sequence[ResultsFile], first: Sequence[ResultsFile],
    metric: Metric, modelled: bool,
) -> Document:  # fmt: skip
    """Return what one variant scores under each seed, and how it differs from the first one."""
    scores = np.array([getattr(document, metric) for document in documents], np.float64)
    pairs = list(zip(first, documents, strict=True))
    by_seed = np.array(
        [compare(Run("first", one), Run("other", two), metric).differences for one, two in pairs]
    )
    # Over the seeds under which a scenario has a score; none: the scenario is not scored.
    scored = by_seed[:, ~np.isnan(by_seed).all(axis=0)]
    differences: Floats = np.nanmean(scored, axis=0) if scored.size else np.array([])
    cells = [_cells(one) != _cells(two) for one, two in pairs]
    return {
        "axis": axis,
        "variant": variant.name(axis),
        "scores": [_number(score) for score in scores],
        "score": _number(float(np.mean(scores))),
        "sd_of_seeds": _number(float(np.std(scores, ddof=1))) if len(scores) > 1 else None,
        "difference": _number(float(differences.mean())) if differences.size else None,
        "interval": [_number(bound) for bound in mean_interval(differences)],
        "scenarios": len(documents[0].scenarios),
        "scored": len(differences),
        "cells": int(sum(part.size for part in cells)),
        "cells_that_differ": int(sum(part.sum() for part in cells)),
        "modelled": modelled,
    }


def _cells(document: ResultsFile) -> Floats:
    """Return all exam cells in one row; an unscored one is a value of its own."""
    rows = [document.cells(name) for name in document.scenarios]
    cells: Floats = np.concatenate([part.ravel() for part in rows])
    return np.where(np.isnan(cells), -1.0, cells)


def simulated_only(settings: EvaluateSettings) -> bool:
    """Whether nobody who reads prompts takes part."""
    roles = evaluate.roles(settings)
    names = {settings.backend.name, roles["user"].name, roles["memory"].name}
    return "litellm" not in names


def run(settings: SensitivitySettings) -> Document:
    """Play all variants, write sensitivity.json, and return it."""
    for key, given in (("wordings", settings.wordings), ("users", settings.users)):
        if len(set(given)) < len(given):
            raise ConfigError(f"{key}: expected each once, found {given}")
    base = Variant(settings.wordings[0], settings.users[0])
    axes = {
        "wording": [Variant(wording, base.user) for wording in settings.wordings],
        "user": [Variant(base.wording, user) for user in settings.users],
    }
    seeds = range(settings.seed, settings.seed + settings.seeds)
    variants = list(dict.fromkeys([*axes["wording"], *axes["user"]]))
    planned = {one: [composed(settings, one, seed) for seed in seeds] for one in variants}
    out = Path(settings.out) if settings.out is not None else numbered("sensitivity")
    documents: dict[Variant, list[ResultsFile]] = {}
    for number, (variant, runs) in enumerate(planned.items()):
        name = f"{number}-{re.sub(r'[^A-Za-z0-9]+', '-', '-'.join(map(str, variant)))[:60]}"
        documents[variant] = [
            played(one.model_copy(update={"out": str(out / name / f"seed-{one.seed}")}), variant)
            for one in runs
        ]
    rows = [
        row(axis, variant, documents[variant], documents[base], settings.metric,
            axis == "user" or not simulated_only(planned[variant][0]))
        for axis, listed in axes.items()
        for variant in listed
    ]  # fmt: skip
    result = {
        "label": documents[base][0].label,
        "simulated": planned[base][0].backend.name == "simulated",
        "settings": settings.model_dump(mode="json", exclude={"out"}),
        "rows": rows,
        "range": {axis: _range(rows, axis) for axis in axes},
    }
    write(out / "sensitivity.json", json.dumps(result, indent=1, allow_nan=False))
    return {**result, "folder": str(out)}


def _range(rows: Sequence[Document], axis: str) -> float | None:
    scores = [row["score"] for row in rows if row["axis"] == axis and row["score"] is not None]
    return max(scores) - min(scores) if scores else None


def lines(result: Document) -> list[str]:
    """Return the table, and below each axis its range beside the spread between seeds."""
    settings = result["settings"]
    found = [
        f"{result['label']}, {settings['metric']}, {settings['seeds']} seeds; differences to the "
        "first are paired by scenario"
    ]
    for axis, change in result["range"].items():
        rows = [row for row in result["rows"] if row["axis"] == axis]
        found.append(f"{axis:<24} score  sd of seeds  difference  95 %              scored")
        found += [_line(row, first=place == 0) for place, row in enumerate(rows)]
        spread = [row["sd_of_seeds"] for row in rows if row["sd_of_seeds"] is not None]
        noise = f"{max(spread):.3f}" if spread else "unknown (seeds=1)"
        found.append(f"  range {_text(change, '.3f')}; largest sd between seeds {noise}")
        if not rows[0]["modelled"]:
            differ = sum(row["cells_that_differ"] for row in rows)
            cells = sum(row["cells"] for row in rows[1:])
            found.append(
                f"  {NOT_MODELLED}: the simulated model does not read a prompt's wording "
                f"({differ} of {cells} cells differ)"
            )
            if differ:
                found.append(
                    "  what differs is no wording either: its replies take up words that a "
                    "template adds to\n  the user's message, and lists are read by their dashes"
                )
    if result["simulated"]:
        found.append("SIMULATED model: not a real model's scores")
    return found


def _line(row: Document, first: bool) -> str:
    low, high = (_text(bound, "+.3f") for bound in row["interval"])
    told = f"{_text(row['difference'], '+.3f'):<11} {low} to {high}"
    if first:
        told = "(first)"
    elif not row["modelled"] and not row["cells_that_differ"]:
        told = NOT_MODELLED
    return (
        f"{row['variant']:<24.24} {_text(row['score'], '.3f'):<6} "
        f"{_text(row['sd_of_seeds'], '.3f'):<12} {told:<29} "
        f"{row['scored']} of {row['scenarios']}"
    )


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def main(given: Document) -> float | None:
    """Run the job and print its table; returns the range over users."""
    result = run(checked(SensitivitySettings, given))
    console = terminal(None)
    for line in lines(result):
        console.print(line)
    console.print(f"written to {result['folder']}")
    found: float | None = result["range"]["user"]
    return found


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("sensitivity", main, check=lambda given: checked(SensitivitySettings, given))
