"""The published schemas, and records that are read back as they were written."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agents import AWE
from amemgym_env.errors import RunError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import evaluate, simulated
from amemgym_env.evaluation.schemas import SCHEMAS, journal_schema, results_schema, text
from amemgym_env.models.events import (
    CLASSES,
    CallEvent,
    EndEvent,
    Event,
    EvolutionEvent,
    EvolutionStep,
    ReferenceEvent,
    WritingPolicy,
    event_json,
    read_event,
)
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.model import Scenario

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
OTHERS: list[Event] = [
    CallEvent("k", "exam", "key", 0, retries=Usage(2), error="timeout", reason="timeout"),
    CallEvent("k", "exam", "key", 0, "text", usage=Usage(1, 2, 3), details={"dropped": ["seed"]}),
    EndEvent(None, "offline", "offline"),
    EvolutionEvent.of(EvolutionStep("fixed", WritingPolicy()), 1, (1, 2), {"1": "tea"}),
    ReferenceEvent(((1.0, None),), (-2,)),
]


@pytest.fixture
def played(tiny: list[Scenario]) -> tuple[ResultsFile, list[Event]]:
    journal = MemoryJournal()
    results = evaluate(
        AWE, tiny[:1], backends=simulated("calibrated"), journal=lambda _: nullcontext(journal)
    )
    return results.file(), journal.read()


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_schema_is_that_of_the_classes(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == text(SCHEMAS[name]())


def test_events_are_valid_and_read_back_as_written(played: tuple[ResultsFile, list[Event]]) -> None:
    check = jsonschema.Draft202012Validator(journal_schema())
    for event in (*played[1], *OTHERS):
        written = json.loads(json.dumps(event_json(event)))
        check.validate(written)
        assert read_event(written) == event
    assert {event.KIND for event in (*played[1], *OTHERS)} == set(CLASSES)


def test_results_are_valid_and_read_back_as_written(
    played: tuple[ResultsFile, list[Event]], tmp_path: Path
) -> None:
    written = json.loads(json.dumps(played[0].to_json()))
    jsonschema.Draft202012Validator(results_schema()).validate(written)
    (tmp_path / "results.json").write_text(json.dumps(written), "utf-8")
    assert ResultsFile.read(tmp_path) == played[0]


def test_results_of_an_older_version_open_without_the_newer_fields(
    played: tuple[ResultsFile, list[Event]], tmp_path: Path
) -> None:
    old = played[0].to_json()
    for name in ("retrieved_share", "index_recall", "unscored_causes", "failed_calls", "seed"):
        del old[name]
    (tmp_path / "results.json").write_text(json.dumps(old), "utf-8")
    found = ResultsFile.read(tmp_path)
    assert found.overall == played[0].overall
    assert (found.failed_calls, found.retrieved_share) == (0, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"event": "dream"}, "one of start, reference, call"),
        ({"event": "exam", "period": 0}, "event 'exam', answers: Field required"),
        ({"event": "start", "scenario": "a", "script": 7}, "event 'start', script"),
    ],
    ids=["kind", "missing", "type"],
)
def test_an_event_of_another_shape_is_one_sentence(content: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said) as caught:
        read_event(content)
    assert "\n" not in str(caught.value)
