"""Does replaying recorded dialogues rank memories as live play does?

Swept: agents, each on-policy and over the dialogues of another assistant. Baseline: the on-policy
ranking. Answers the paper's reuse-bias table (Section 4.2). With a simulated model whose replies
carry no belief (`exact`, `confusion_only`) the two columns differ by nothing but words: the table
then says "not modelled".

    python -m experiments.reuse_bias scenarios=base
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amemgym_env.envs.rewards import Floats
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.metrics import MemoryScore
from amemgym_env.evaluation.statistics import Rows, bca_interval, kendall_tau
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.simulated.profiles import named_profile
from experiments.app import hydra_app as job
from experiments.app.composition import compose
from experiments.app.run_folder import numbered
from experiments.app.settings import BackendSettings, Count, Settings, SimulatedBackend, checked
from experiments.app.terminal import interval, number, terminal
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


def agent_settings(label: str) -> dict[str, Any]:
    """Return the settings of an agent from its label.

    Raises:
        ConfigError: it is no label of a known agent.
    """
    name, *numbers = label.split("-")
    names = {"native": (), "awi": ("freq", "ns"), "rag": ("freq", "ns", "top_k")}
    names["awe"] = names["rag"]
    if len(names.get(name, (None,) * 9)) != len(numbers) or not all(
        part.isdecimal() for part in numbers
    ):
        raise ConfigError(
            f"agents: expected native, rag-FREQ-NS-TOPK, awe-FREQ-NS-TOPK or awi-FREQ-NS, "
            f"found {label!r}"
        )
    sizes = zip(names[name], map(int, numbers), strict=True)
    return {"name": name, **dict(sizes)}


def played(settings: ReuseBiasSettings, label: str, out: Path, **changes: Any) -> MemoryScore:
    """Return the memory score of one run, kept in a folder of its own."""
    composed = {
        **compose("evaluate"),
        "scenarios": settings.scenarios,
        "limit": settings.limit,
        "seed": settings.seed,
        "out": str(out),
        "agent": agent_settings(label),
        "backend": settings.backend.model_dump(),
        **changes,
    }
    found = evaluate(checked(EvaluateSettings, composed), quiet=True)
    scenarios = {item.id: item for item in named_scenarios(settings.scenarios, settings.limit)}
    return found.results.memory_scores(scenarios)


def table(rows: list[Row], modelled: bool) -> list[str]:
    """Return the table's lines, best on-policy first."""
    ranks = {
        mode: sorted(rows, key=lambda row: -getattr(row, mode).mean_of_ratios())
        for mode in ("on", "off")
    }
    lines = [
        "agent          on-policy  95 %        off-policy  95 %        difference  95 %        rank"
    ]
    for row in ranks["on"]:
        moved = ranks["on"].index(row) - ranks["off"].index(row)
        change = "0" if not moved else f"{'up' if moved > 0 else 'down'} {abs(moved)}"
        difference = row.off.mean_of_ratios() - row.on.mean_of_ratios()
        bounds = row.off.difference_interval(row.on).to_json()
        lines.append(
            f"{row.label:<14} {number(row.on.mean_of_ratios()):<10} "
            f"{interval(row.on.interval.to_json()):<11} "
            f"{number(row.off.mean_of_ratios()):<11} "
            f"{interval(row.off.interval.to_json()):<11} "
            f"{difference:+.3f}      {interval(bounds):<11} {change}"
        )
    if not modelled:
        lines.append("reuse bias: not modelled (this profile's replies carry no belief)")
    users = len(rows[0].on.ratios)
    low, high = bca_interval(lambda drawn: _tau(rows, drawn), users, resamples=RESAMPLES)
    lines.append(f"Kendall's tau {tau(rows):.2f}, 95 % {low:.2f} to {high:.2f} (scenarios)")
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
    for line in table(rows, modelled):
        console.print(line)
    console.print(
        "SIMULATED model: not a real model's scores" if simulated else "", f"written to {out}"
    )
    return tau(rows)


if __name__ == "__main__":
    job.run("reuse_bias", main)
