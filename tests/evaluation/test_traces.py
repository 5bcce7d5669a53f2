"""Off-policy: recorded dialogues are replayed, and nothing but the memory is the agent's."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from agents import AWI, RAG, Native
from amemgym_env.errors import RunError
from amemgym_env.evaluation.run import Game, evaluate, simulated
from amemgym_env.evaluation.traces import traces
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.journal import FileJournal, MemoryJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import build

Opened = Callable[[Scenario], AbstractContextManager[Any]]


def kept(folder: Path) -> Opened:
    return lambda scenario: FileJournal(folder / "journals" / f"{slug(scenario.id)}.jsonl")


@pytest.fixture
def native_run(tiny: list[Scenario], tmp_path: Path) -> Path:
    evaluate(Native, tiny, journal=kept(tmp_path / "native"), backends=simulated("calibrated"))
    return tmp_path / "native"


def turns(scenarios: list[Scenario], agent: Any, **settings: Any) -> list[list[tuple[str, str]]]:
    journals = {scenario.id: MemoryJournal() for scenario in scenarios}
    evaluate(agent, scenarios, journal=lambda s: nullcontext(journals[s.id]), **settings)
    return [
        [(turn.message, turn.reply) for turn in last_play(journal.read()).turns]
        for journal in journals.values()
    ]


@pytest.mark.slow
def test_an_agent_off_policy_hears_the_recorded_dialogue(tmp_path: Path) -> None:
    scenarios = list(named_scenarios("validation:1:5"))
    recorded = turns(scenarios, Native, backends=simulated("calibrated"))
    evaluate(Native, scenarios, journal=kept(tmp_path / "run"), backends=simulated("calibrated"))
    off = turns(scenarios, AWI, recorded=tmp_path / "run", backends=simulated("calibrated"))
    assert off == recorded
    assert turns(scenarios, AWI, backends=simulated("calibrated")) != recorded


def test_its_own_trace_replays_an_agent_exactly(tiny: list[Scenario], native_run: Path) -> None:
    live = evaluate(Native, tiny, backends=simulated("calibrated")).to_json()
    again = evaluate(Native, tiny, recorded=native_run, backends=simulated("calibrated")).to_json()
    assert (live["mode"], again["mode"]) == ("on_policy", "off_policy")
    assert again["accuracy"] == live["accuracy"]
    assert again["failure"] == live["failure"]
    assert "assistant" not in again["usage"]  # nobody was asked to speak


def test_the_recorded_user_speaks_too(tiny: list[Scenario], tmp_path: Path) -> None:
    """Follow-ups of a real user model are replayed, not the script's."""
    interactions = _interactions(tiny, follow_up="And how would you go about it?")
    file = tmp_path / "interactions.json"
    file.write_text(json.dumps(interactions), encoding="utf-8")
    said = {message for row in turns(tiny, RAG, recorded=file) for message, _ in row}
    assert "And how would you go about it?" in said
    replies = {reply for row in turns(tiny, RAG, recorded=file) for _, reply in row}
    assert replies == {"As you like."}


def _interactions(scenarios: list[Scenario], follow_up: str = "Go on.") -> list[Any]:
    """Return the benchmark's own shape: users, periods, sessions, messages."""
    return [
        [
            [
                [
                    part
                    for number, utterance in enumerate(conversation.utterances)
                    for part in (
                        {
                            "role": "user",
                            "content": follow_up
                            if number
                            else f"[Current time: {conversation.time}]\n{utterance.text}",
                        },
                        {"role": "assistant", "content": "As you like."},
                    )
                ]
                for conversation in conversations
            ]
            for conversations in build(scenario).periods
        ]
        for scenario in scenarios
    ]


def test_users_of_an_interaction_file_may_be_named(tiny: list[Scenario], tmp_path: Path) -> None:
    rows = [
        {"id": scenario.id, "periods": row}
        for scenario, row in zip(tiny, _interactions(tiny), strict=True)
    ]
    file = tmp_path / "named.json"
    file.write_text(json.dumps(rows[::-1]), encoding="utf-8")
    found = traces(file, [build(scenario) for scenario in tiny])
    assert set(found) == {scenario.id for scenario in tiny}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda rows: rows.pop(), "found 2 users without it"),
        (lambda rows: rows[0][1][0].pop(0), "period 1, session 0"),
        (lambda rows: rows[1][0].pop(), "expected"),
        (lambda rows: rows.reverse(), "belongs to another script"),
        (lambda rows: rows[0][0][0][0].update(content="Hello."), "belongs to another script"),
    ],
    ids=["user missing", "message missing", "session missing", "other order", "other words"],
)
def test_a_foreign_or_torn_trace_is_refused_before_anything_is_played(
    spoil: Callable[[Any], Any], said: str, tiny: list[Scenario], tmp_path: Path
) -> None:
    rows = _interactions(tiny)
    assert len(rows) == 3
    spoil(rows)
    file = tmp_path / "torn.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    journal = MemoryJournal()
    with pytest.raises(RunError, match=said):
        evaluate(RAG, tiny, recorded=file, journal=lambda _: nullcontext(journal))
    assert journal.read() == []


def test_a_missing_trace_is_refused(tiny: list[Scenario], native_run: Path) -> None:
    with pytest.raises(RunError, match="found nothing"):
        evaluate(RAG, tiny, recorded=native_run / "nowhere")
    next((native_run / "journals").iterdir()).unlink()
    with pytest.raises(RunError, match="expected a journal of scenario"):
        evaluate(RAG, tiny, recorded=native_run)


def test_the_options_may_be_shown_in_another_order(tiny: list[Scenario], native_run: Path) -> None:
    document = evaluate(AWI, tiny, recorded=native_run, game=Game(seed=4)).to_json()
    assert document["unscored"] == 0
