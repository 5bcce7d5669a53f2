"""The default embedding finds the openers that a question needs."""

from __future__ import annotations

from pathlib import Path

from amemgym_env.scenarios.files import load
from amemgym_env.scenarios.model import Scenario
from experiments.benchmark.retrieval import retrieval


def test_on_the_real_set_it_reaches_what_the_design_asks_for(real_data: Path) -> None:
    found = retrieval(load(real_data))
    assert found.questions == 200
    assert found.recall_at_10 >= 0.77
    assert found.mrr >= 0.88


def test_with_few_openers_all_are_found(tiny: list[Scenario]) -> None:
    found = retrieval(tiny)
    assert found.recall_at_10 == 1.0
    assert found.mrr <= 1.0
