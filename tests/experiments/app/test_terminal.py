"""Tables in the terminal: texts as they are, one form for every score, and what the rows mean."""

from __future__ import annotations

import re

import pytest

from amemgym_env.evaluation.results_file import ResultsFile
from experiments.app.pareto import cost
from experiments.app.sweep_tables import Row, print_sweep
from experiments.app.terminal import MEANINGS, number, print_comparison, references, shown
from tests.experiments.report.cases import run_folder


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ResultsFile]:
    root = tmp_path_factory.mktemp("runs")
    words = {"whole": [], "bare": ["diagnosis=false", "upper_bound=false"]}
    return {
        name: ResultsFile.read(run_folder(root / name, "scenarios=tiny", "agent=rag", *more))
        for name, more in words.items()
    }


def test_scores_below_the_agents_have_one_form_and_the_oracle_is_named(
    documents: dict[str, ResultsFile], capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison([documents["whole"]])
    printed = capsys.readouterr().out
    oracle, second, *rows = printed.split("upper bound")[1].splitlines()[1:10]
    assert f"{oracle.rsplit(None, 1)[0].strip()} {second.strip()}" == shown("one_period_late")
    rows = [oracle, *rows]
    assert [row.rsplit(None, 1)[0].strip() for row in rows[1:]] == [
        shown(name) for name in list(MEANINGS)[2:]
    ]
    assert all(re.fullmatch(r"\.\d{3}", row.split()[-1]) for row in rows)
    assert "The oracle answers with" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_every_floor_has_a_meaning(documents: dict[str, ResultsFile]) -> None:
    assert {name for name, _ in references(documents["whole"])} == set(MEANINGS)


def test_names_are_printed_as_they_are(
    documents: dict[str, ResultsFile], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = documents["whole"]
    settings = {**whole.settings, "scenarios": "validation:100:3"}
    document = whole.model_copy(update={"settings": settings, "label": "mine[red]:fire:"})
    print_comparison([document])
    printed = capsys.readouterr().out
    assert "(validation:100:3)" in printed
    assert "mine[red]:fire:" in printed


def test_what_was_not_asked_is_no_zero(
    documents: dict[str, ResultsFile], capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison([documents["bare"]])
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.strip().startswith("rag-"))
    assert row.split()[-3:] == ["-", "-", "-"]
    assert "no upper bound was asked" in printed
    assert "user-periods" not in printed


def test_a_sweeps_costs_name_their_unit(
    documents: dict[str, ResultsFile], capsys: pytest.CaptureFixture[str]
) -> None:
    document = documents["whole"]
    spent = cost(document)
    row = Row(0, "agent=rag", "rag", document.overall, 0.5, (0.4, 0.6), spent)
    print_sweep([row], document, {"tokens": [0], "usd": [0]})
    printed = capsys.readouterr().out
    header = next(line for line in printed.splitlines() if "overall" in line)
    assert "tokens/user" in header
    assert "US$/user" in header
    assert f"{spent.tokens:,.0f}" in printed
    assert "Cost of one user, all periods" in printed
    assert f"random {number(document.random)}" in printed
    assert max(map(len, printed.splitlines())) <= 80
