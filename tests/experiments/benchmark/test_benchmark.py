"""The benchmark job at tiny sizes: it prints every table, and refuses what it cannot measure."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from experiments.app.composition import compose
from experiments.app.settings import checked
from experiments.benchmark import memory_env as speed_numbers
from experiments.benchmark import run as benchmark
from experiments.benchmark import training as speed_training

TINY = ("counts=[2]", "text_steps=50", "training_rounds=null", "memory=false", "growth=false")


def composed(*words: str) -> dict[str, Any]:
    return compose("benchmark", words)


def test_the_configuration_is_valid() -> None:
    assert checked(benchmark.BenchmarkSettings, composed()).counts == [1, 64, 1024, 8192]


@pytest.mark.slow
def test_tables_are_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed_numbers, "_SLICE", 0.005)
    small = partial(speed_numbers.train_pool, 2, 2)
    monkeypatch.setattr(speed_numbers, "train_pool", small)
    benchmark.main(composed(*TINY, f"out={tmp_path}/speed.md"))
    printed = capsys.readouterr().out
    for heading in ("### Random play in AMemGym-v0", "### Steps a second"):
        assert heading in printed
    for row in ("CartPole-v1", "AMemGymMemory-v0", "AMemGymSlots-v0"):
        assert f"| {row} | vector_entry_point | 2 |" in printed
    assert (tmp_path / "speed.md").read_text("utf-8").strip() == printed.strip()


def test_memory_is_measured_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def peak(pool_size: int, mode: str, num_envs: int) -> float:
        asked.append((mode, num_envs))
        return 100.0

    monkeypatch.setattr(speed_numbers, "peak_memory", peak)
    table = benchmark._memory([1, 8192])
    assert ("sync", 8192) not in asked
    assert ("vector_entry_point", 8192) in asked
    assert table.count("\n") == 1 + len(asked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("counts=[0]",), "counts"),
        (("counts=[]",), "counts"),
        (("difficulty=hrad",), "expected one of"),
    ],
    ids=["zero", "none", "difficulty"],
)
def test_a_wrong_setting_is_one_error(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        benchmark.main(composed(*TINY, *words))


@pytest.mark.slow
def test_training_speeds_stand_side_by_side() -> None:
    pool = speed_numbers.train_pool(2, 2)
    speeds = speed_training.training_speeds(num_envs=16, rounds=1024, turns=1, pool=pool)
    assert [speed.name for speed in speeds] == ["DummyVecEnv", "native batch"]
    for speed in speeds:
        assert speed.environment > 0
        assert speed.learning > 0
        assert speed.environment + speed.deciding + speed.learning == pytest.approx(1.0)
    table = speed_training.training_table(speeds)
    ratio = speeds[1].rounds_a_second / speeds[0].rounds_a_second
    assert f"| {ratio:.2f} |" in table.splitlines()[-1]
