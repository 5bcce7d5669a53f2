"""The job `benchmark`: speed and memory of the environments, as Markdown tables of ratios.

Swept: the number of environments, the mode, capacity, scenarios and rounds. Baselines: CartPole-v1
in the same mode for the memory environments, a no-op environment for `AMemGym-v0`, DummyVecEnv of
scalar environments for training. Only ratios can be compared between machines.

    python -m experiments.benchmark
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from amemgym_env.scenarios.difficulty import named_difficulty
from experiments.app import hydra_app as job
from experiments.app.run_folder import write
from experiments.app.settings import Count, Settings, checked
from experiments.benchmark import memory_env, text_env, training
from experiments.benchmark.timing import markdown


class BenchmarkSettings(Settings):
    """Settings of `python -m experiments.benchmark`; conf/benchmark.yaml says what they mean."""

    counts: Annotated[list[Count], Field(min_length=1)]
    difficulty: str
    text_steps: Count | None
    training_rounds: Count | None
    memory: bool
    growth: bool
    capacities: list[Count]
    scenarios: list[Count]
    rounds: list[Count]
    out: str | None


def sections(settings: BenchmarkSettings) -> Iterable[str]:
    """Yield each table, with a heading, as soon as it is measured."""
    named_difficulty(settings.difficulty)
    if settings.text_steps is not None:
        yield "### Random play in AMemGym-v0\n\n" + _text(settings)
    speeds = memory_env.measured(settings.difficulty, settings.counts)
    yield "### Steps a second\n\n" + memory_env.table(speeds)
    if settings.training_rounds is not None:
        trained = training.training_speeds(rounds=settings.training_rounds)
        yield "### PPO, 64 environments, batches of 1,024\n\n" + training.training_table(trained)
    if settings.memory:
        yield "### Peak memory\n\n" + _memory(settings.counts)
    if settings.growth:
        rows = memory_env.growth(settings.capacities, settings.scenarios, settings.rounds)
        yield "### Growth\n\n" + memory_env.growth_table(rows)


def _text(settings: BenchmarkSettings) -> str:
    assert settings.text_steps is not None
    rows = []
    for scenarios in ("tiny", "base"):
        rate = text_env.random_play(scenarios, settings.text_steps)
        share = rate.environment / rate.no_op
        rows.append((scenarios, f"{rate.environment:,.0f}", f"{share:.3f}"))
    return markdown(("scenarios", "steps/s", "of an environment that does nothing"), rows)


def _memory(counts: Iterable[int]) -> str:
    modes: list[tuple[str, int]] = [("scalar", 1)]
    for count in counts:
        possible = {"sync": count <= 1024, "async": count <= 8, "vector_entry_point": True}
        modes += [(mode, count) for mode, fits in possible.items() if fits]
    rows = [
        (mode, f"{count:,}", f"{memory_env.peak_memory(64, mode, count):,.0f}")
        for mode, count in modes
    ]
    return markdown(("mode", "environments", "peak, MB"), rows)


def main(composed: dict[str, Any]) -> None:
    """Measure, and print each table when it is ready."""
    settings = checked(BenchmarkSettings, composed)
    parts = []
    for part in sections(settings):
        print(part, end="\n\n", flush=True)
        parts.append(part)
    if settings.out is not None:
        write(Path(settings.out), "\n\n".join(parts))


def command() -> None:
    """Run the job with the settings of the command line."""
    job.run("benchmark", main)
