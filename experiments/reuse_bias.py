"""The job `reuse_bias`: on-policy against off-policy rankings of agents.

Question: does replaying recorded dialogues rank memories as live play does? Swept: agents, each
on-policy and over the dialogues of another assistant. Baseline: the on-policy ranking. Reproduces
the paper's reuse-bias table (Section 4.2). With a simulated model whose replies carry no belief
(`exact`, `confusion_only`) the table says "not modelled".

    python -m experiments.reuse_bias scenarios=base
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from amemgym_env.envs.rewards import Floats
from amemgym_env.evaluation.metrics import MemoryScore
from amemgym_env.evaluation.statistics import Rows, bca_interval, kendall_tau
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.simulated.profiles import named_profile
from experiments.app import hydra_app as job
from experiments.app.composition import compose
from experiments.app.run_folder import numbered
from experiments.app.settings import BackendSettings, Count, Settings, SimulatedBackend, checked
from experiments.app.terminal import interval, number, plain_table, signed, terminal
from experiments.evaluate.agents import agent_settings
from experiments.evaluate.run import run as evaluate
from experiments.evaluate.settings import EvaluateSettings

RESAMPLES = 2000


class ReuseBiasSettings(Settings):
    """Settings of `python -m experiments.reuse_bias`; conf/reuse_bias.yaml says what they mean."""

    scenarios: str
    limit: Count | None
    seed: int
    agents: list[str]
    traces: str | None
    out: str | None
    backend: BackendSettings


class Row(NamedTuple):
    """One agent's memory scores, by user and period, under both modes."""

    label: str
    on: MemoryScore
    off: MemoryScore


def played(settings: ReuseBiasSettings, label: str, out: Path, **changes: Any) -> MemoryScore:
    """Return the memory score of one run, kept in a folder of its own."""
    composed = {
        **compose("evaluate"),
        "scenarios": settings.scenarios,
        "limit": settings.limit,
        "seed": settings.seed,
        "out": str(out),
        "agent": agent_settings(label).model_dump(),
        "backend": settings.backend.model_dump(),
        **changes,
    }
    found = evaluate(checked(EvaluateSettings, composed), quiet=True)
    scenarios = {item.id: item for item in named_scenarios(settings.scenarios, settings.limit)}
    return found.results.memory_scores(scenarios)


def table(rows: list[Row]) -> Table:
    """Return one row an agent, best on-policy first."""
    ranks = {
        mode: sorted(rows, key=lambda row: -getattr(row, mode).mean_of_ratios())
        for mode in ("on", "off")
    }
    made = plain_table("agent", "on-policy", "95 %", "off-policy", "95 %", "diff.", "95 %", "rank")
    for row in ranks["on"]:
        moved = ranks["on"].index(row) - ranks["off"].index(row)
        change = "0" if not moved else f"{'up' if moved > 0 else 'down'} {abs(moved)}"
        difference = row.off.mean_of_ratios() - row.on.mean_of_ratios()
        made.add_row(
            row.label,
            number(row.on.mean_of_ratios()),
            interval(row.on.interval.to_json()),
            number(row.off.mean_of_ratios()),
            interval(row.off.interval.to_json()),
            signed(difference),
            interval(row.off.difference_interval(row.on).to_json()),
            change,
        )
    return made


def notes(rows: list[Row], modelled: bool) -> list[str]:
    """Return the lines below the table."""
    users = len(rows[0].on.ratios)
    low, high = bca_interval(lambda drawn: _tau(rows, drawn), users, resamples=RESAMPLES)
    lines = [f"Kendall's tau {tau(rows):.2f}, 95 % {low:.2f} to {high:.2f} (scenarios)"]
    if not modelled:
        lines.insert(0, "reuse bias: not modelled (this profile's replies carry no belief)")
    return lines


def _tau(rows: Sequence[Row], users: Rows) -> Floats:
    """Return Kendall's tau of each resample; `users` are (resamples, users) indices."""
    on = np.array([row.on.resampled(users) for row in rows])
    off = np.array([row.off.resampled(users) for row in rows])
    return np.array([kendall_tau(*pair) for pair in zip(on.T, off.T, strict=True)])


def tau(rows: Sequence[Row]) -> float:
    """Return Kendall's tau of the two rankings."""
    return kendall_tau(
        [row.on.mean_of_ratios() for row in rows], [row.off.mean_of_ratios() for row in rows]
    )


def main(composed: dict[str, Any]) -> float:
    """Play all agents in both modes, print the table, and return Kendall's tau."""
    settings = checked(ReuseBiasSettings, composed)
    for label in settings.agents:
        agent_settings(label)
    out = Path(settings.out) if settings.out is not None else numbered("reuse-bias")
    traces = settings.traces
    if traces is None:
        traces = str(out / "traces")
        played(settings, "native", Path(traces), seed=settings.seed + 1)
    rows = []
    for label in settings.agents:
        on = played(settings, label, out / f"{label}-on")
        off = played(settings, label, out / f"{label}-off", mode="off_policy", traces=traces)
        rows.append(Row(label, on, off))
    backend = settings.backend
    simulated = isinstance(backend, SimulatedBackend)
    modelled = not isinstance(backend, SimulatedBackend) or named_profile(backend.profile).echo > 0
    console = terminal(None)
    console.print(table(rows))
    for line in notes(rows, modelled):
        console.print(line)
    console.print(
        "SIMULATED model: not a real model's scores" if simulated else "", f"written to {out}"
    )
    return tau(rows)


if __name__ == "__main__":
    job.run("reuse_bias", main)
