"""Which rates make the simulated model fail like a real one, and what follows for the rest?

Fitted: the failure rates of four agents (write, read, utilization), one table. Held out: six other
AWE settings, the upper bound, the fall over periods, `extra`. Baseline of the held-out scores: that
all settings of a family score alike. Answers the paper's Sections 4.2 and 4.3.

    python -m experiments.calibrate scenarios=amemgym-v1.base.json
    python -m experiments.calibrate scenarios=amemgym-v1.base.json profile=calibrated rounds=0
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from rich.console import Console

from amemgym_env.evaluation.run import Game
from amemgym_env.evaluation.statistics import kendall_tau
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.simulated.profiles import ErrorRates, named_profile
from experiments.app import hydra_app as job
from experiments.app.run_folder import write
from experiments.app.settings import Count, Settings, checked
from experiments.app.terminal import terminal
from experiments.calibrate.fit import START, Bench, equally_good, search
from experiments.calibrate.paper_figures import (
    CONTRASTS,
    EXTRA_NATIVE,
    FAILURE_RATES,
    ON_POLICY,
    UPPER_BOUND_LEAST,
)

AWE = [label for label in ON_POLICY if label.startswith("awe")]
ORDER = ("awe-2-4-30", "rag-2-4-30", "native", "awi-2-4")
"""Families by the paper's memory score, best first."""


class CalibrateSettings(Settings):
    """Settings of `python -m experiments.calibrate`; conf/calibrate.yaml says what they mean."""

    scenarios: str
    limit: Count | None
    search_users: Count
    rounds: int = Field(ge=0)
    profile: str | None
    sets: int = Field(ge=0)
    sets_users: Count
    tolerance: float = Field(ge=0)
    extra_users: int = Field(ge=0)
    workers: Count
    out: str | None


def conclusions(score: Callable[[str], float], periods: Callable[[str], Any]) -> dict[str, bool]:
    """Return which of the paper's conclusions hold, given memory scores by agent label."""
    found = {name: score(better) > score(worse) for name, better, worse in CONTRASTS}
    pairs = pairwise(ORDER)
    found |= {f"{better} over {worse}": score(better) > score(worse) for better, worse in pairs}
    native = np.array(periods("native"))
    third = max(1, len(native) // 3)
    found["native falls over periods"] = bool(native[:third].mean() > native[-third:].mean())
    return found


def held_out(bench: Bench, rates: ErrorRates) -> dict[str, Any]:
    """Return what the fit did not see: scores of all ten agents, and what follows from them."""
    scores = {label: bench.played(label, rates).memory for label in ON_POLICY}
    ours = np.array([scores[label] for label in AWE])
    theirs = np.array([ON_POLICY[label] for label in AWE])
    off = (ours - ours.mean()) - (theirs - theirs.mean())
    native = bench.played("native", rates)
    return {
        "scores": scores,
        "tau_awe": kendall_tau(ours.tolist(), theirs.tolist()),
        "tau_all": kendall_tau(list(scores.values()), list(ON_POLICY.values())),
        "error": float(np.sqrt(np.mean(off**2))),
        "error_of_family_mean": float(theirs.std()),
        "upper_bound": native.upper_bound,
        "by_period": {label: bench.played(label, rates).memory_by_period for label in ORDER},
        "conclusions": conclusions(
            scores.__getitem__, lambda label: bench.played(label, rates).memory_by_period
        ),
    }


def run(settings: CalibrateSettings) -> dict[str, Any]:
    """Search, hold out and count; return everything that was found."""
    chosen = list(named_scenarios(settings.scenarios, settings.limit))
    start = START if settings.profile is None else named_profile(settings.profile)
    small = Bench(chosen[: settings.search_users], workers=settings.workers)
    best, _ = search(small, start, rounds=settings.rounds)
    cost_of_search = small.cost(best, FAILURE_RATES)
    small.close()
    bench = Bench(chosen, workers=settings.workers)
    document: dict[str, Any] = {
        "error_rates": asdict(best),
        "fit": {label: bench.played(label, best).rates.tolist() for label in FAILURE_RATES},
        "cost": bench.cost(best, FAILURE_RATES),
        "cost_of_search": cost_of_search,
        "held_out": held_out(bench, best),
        "shares": {},
        "sets": [],
        "extra": None,
    }
    bench.close()
    if settings.sets:
        few = Bench(chosen[: settings.sets_users], workers=settings.workers)
        good = equally_good(few, best, settings.sets, tolerance=settings.tolerance)
        held = [
            conclusions(
                lambda label, item=item: few.played(label, item).memory,  # type: ignore[misc]
                lambda label, item=item: few.played(label, item).memory_by_period,  # type: ignore[misc]
            )
            for item in good
        ]
        few.close()
        document["sets"] = [asdict(item) for item in good]
        document["shares"] = {
            name: float(np.mean([found[name] for found in held])) for name in held[0]
        }
    if settings.extra_users:
        extra = list(named_scenarios("extra", settings.extra_users))
        game = Game(rounds_initial=2, rounds_update=5)
        long = Bench(extra, game, settings.workers)
        document["extra"] = long.played("native", best).memory
        long.close()
    return document


def report(document: Mapping[str, Any], console: Console) -> None:
    """Print fit and held-out figures beside the paper's."""
    console.print(
        "error rates: " + ", ".join(f"{k} {v:g}" for k, v in document["error_rates"].items())
    )
    console.print("\nFITTED                 write          read           utilization")
    console.print("                       here   paper   here   paper   here   paper")
    for label, rates in document["fit"].items():
        pairs = zip(rates, FAILURE_RATES[label], strict=True)
        row = "   ".join(f"{ours:.3f}  {theirs:.3f}" for ours, theirs in pairs)
        console.print(f"  {label:<20} {row}")
    console.print(f"  root mean square error {document['cost']:.3f}")
    held = document["held_out"]
    console.print("\nHELD OUT               memory score here   paper")
    for label, ours in held["scores"].items():
        console.print(f"  {label:<20} {ours:.3f}               {ON_POLICY[label]:.3f}")
    console.print(
        f"  Kendall's tau: {held['tau_awe']:.2f} within AWE, {held['tau_all']:.2f} over all ten\n"
        "  (ten points carry little: 20 of their 45 gaps are below one standard error, and right\n"
        "  families with a random order inside reach .6 in four cases of ten)\n"
        f"  error of AWE settings about the family mean {held['error']:.3f}; of calling them all "
        f"equal {held['error_of_family_mean']:.3f}\n"
        f"  upper bound {held['upper_bound']:.3f} (paper: above {UPPER_BOUND_LEAST})"
    )
    for label, row in held["by_period"].items():
        console.print(f"  {label:<20} by period " + " ".join(f"{value:.2f}" for value in row))
    if document["extra"] is not None:
        console.print(
            f"  native on extra {document['extra']:.3f} (paper {EXTRA_NATIVE}; on base "
            f"{held['scores']['native']:.3f}, paper {ON_POLICY['native']})"
        )
    count = len(document["sets"])
    console.print(f"\nCONCLUSIONS OF THE PAPER     holds here   share of {count} equally good sets")
    for name, holds in held["conclusions"].items():
        share = document["shares"].get(name)
        beside = "-" if share is None else f"{share:.2f}"
        console.print(f"  {name:<28} {'yes' if holds else 'no':<11} {beside}")
    console.print("\nSIMULATED model: these are not a real model's scores.")


def main(composed: dict[str, Any]) -> float:
    """Calibrate as settings say, print it, and return the fit's error."""
    settings = checked(CalibrateSettings, composed)
    document = run(settings)
    report(document, terminal(None))
    if settings.out is not None:
        write(Path(settings.out), json.dumps(document, indent=1))
    cost: float = document["cost"]
    return cost


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("calibrate", main)
