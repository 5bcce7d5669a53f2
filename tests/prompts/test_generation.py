"""Generation prompts: what their readers accept and refuse, and repairs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from amemgym_env.agent import Variable
from amemgym_env.errors import ConfigError, ParseError
from amemgym_env.prompts.base import BUILT_IN, Templates
from amemgym_env.prompts.generation import GENERATING
from amemgym_env.prompts.generation.base import RepairNote, Step
from amemgym_env.prompts.generation.questions import Conflict, Draft
from amemgym_env.prompts.generation.state import InitialState
from tests.prompts.examples import BOTH, PETS, PROFILE
from tests.prompts.examples import GENERATION as PROMPTS


def test_an_unusable_reply_is_put_back_with_what_was_wrong() -> None:
    prompt = InitialState(PROFILE, "2020-10-01", BOTH)
    sent = prompt.repaired("{x}", "expected {a}.").repaired("", "it is empty").render(BUILT_IN)
    assert sent[:1] == prompt.render(BUILT_IN)
    assert [part["role"] for part in sent[1:]] == ["assistant", "user"] * 2
    assert [part["content"] for part in sent[1:]] == [
        "{x}",
        "That reply cannot be used: expected {a}.\nGive the whole reply again, corrected, in the "
        "form that was asked for and nothing else.",
        "(nothing)",
        "That reply cannot be used: it is empty.\nGive the whole reply again, corrected, in the "
        "form that was asked for and nothing else.",
    ]


def test_templates_of_a_folder_take_the_place_of_any_step(tmp_path: Any) -> None:
    (tmp_path / "generation_repair.txt").write_text("Wrong: {problem}", encoding="utf-8")
    templates = Templates.from_folder(tmp_path, GENERATING)
    sent = InitialState(PROFILE, "x", BOTH).repaired("a", "b").render(templates)
    assert sent[-1]["content"] == "Wrong: b"
    (tmp_path / "question_drafts.txt").write_text("Ask.", encoding="utf-8")
    with pytest.raises(ConfigError, match="question_drafts"):
        Templates.from_folder(tmp_path, GENERATING)
    with pytest.raises(TypeError):
        RepairNote().render(BUILT_IN)


def rows(**given: Any) -> str:
    return json.dumps(given)


def draft(**given: Any) -> dict[str, Any]:
    variables = [{"name": "pets", "values": ["none", "one", "many"]}]
    return {"question": "What of my pets?", "variables": variables, **given}


def variable(name: str, *values: str) -> dict[str, Any]:
    return {"variables": [{"name": name, "values": list(values)}]}


OTHER = draft(question="When?", **variable("work", "a", "b", "c"))

WRONG: dict[str, tuple[Step[Any], str, str]] = {
    "no list": (PROMPTS[0], rows(question=[]), "a list of objects under 'questions'"),
    "count": (PROMPTS[0], rows(questions=[draft()]), "expected 2 questions, found 1"),
    "no text": (PROMPTS[0], rows(questions=[draft(question=" "), OTHER]), "text under 'question'"),
    "name": (
        PROMPTS[0],
        rows(questions=[draft(**variable("Pets!", "a", "b", "c")), OTHER]),
        "question 1: expected a name such as work_days, found 'Pets!'",
    ),
    "few values": (
        PROMPTS[0],
        rows(questions=[draft(**variable("pets", "a", "b")), OTHER]),
        "question 1, pets: expected 3 or 4 different values",
    ),
    "same values": (
        PROMPTS[0],
        rows(questions=[draft(**variable("pets", "a", "b", "a")), OTHER]),
        "3 or 4 different values",
    ),
    "same name": (PROMPTS[0], rows(questions=[draft(), draft()]), "'pets' stands there already"),
    "conflict": (PROMPTS[1], rows(conflicts=[{"variables": ["x"], "reason": "y"}]), "names of"),
    "missing": (
        PROMPTS[3],
        rows(state=[{"variable": "pets", "value": "one"}]),
        "expected the key 'work_days'",
    ),
    "value": (PROMPTS[4], rows(updates=[{"variable": "pets", "value": "two"}]), "expected one of"),
    "no change": (
        PROMPTS[4],
        rows(updates=[{"variable": "pets", "value": "one"}]),
        "other values than now, found the same for ['pets']",
    ),
    "unknown": (
        PROMPTS[4],
        rows(updates=[{"variable": "cats", "value": "one"}]),
        "expected variables of ['pets'], found 'cats'",
    ),
    "number": (PROMPTS[5], rows(events=[{"number": 2, "event": "x"}]), "numbers from 1 to 1"),
    "none": (PROMPTS[6], rows(utterances=[]), "found none for [1]"),
    "same": (
        PROMPTS[9],
        rows(answers=[{"number": n, "text": "Walk."} for n in (1, 2)]),
        "different texts",
    ),
    "reading": (PROMPTS[10], rows(number=3), "a number from 0 to 2"),
    "other's": (PROMPTS[11], rows(text="Walk them."), "expected another answer"),
    "rating": (PROMPTS[12], rows(rating=3), "a number from 0 to 2"),
}  # type: ignore[assignment]


@pytest.mark.parametrize("case", WRONG)
def test_a_reply_that_breaks_a_rule_is_refused_in_words_for_the_model(case: str) -> None:
    prompt, reply, expected = WRONG[case]
    with pytest.raises(ParseError) as caught:
        prompt.parse(reply)
    assert expected in str(caught.value)


def test_good_replies_are_read() -> None:
    replies: dict[str, tuple[str, Any]] = {
        "question_drafts": (
            rows(questions=[draft(), OTHER]),
            (
                Draft("What of my pets?", (PETS,)),
                Draft("When?", (Variable("work", ("a", "b", "c")),)),
            ),
        ),
        "schema_conflicts": (
            rows(conflicts=[{"variables": ["pets"], "reason": "x"}]),
            (Conflict(("pets",), "x"),),
        ),
        "initial_state": (
            rows(
                state=[
                    {"variable": "Work days", "value": "TWO"},
                    {"variable": "pets", "value": "one"},
                ]
            ),
            {"pets": "one", "work_days": "two"},
        ),
        "period_updates": (
            rows(updates=[{"variable": "pets", "value": "many"}]),
            {"pets": "many"},
        ),
        "life_events": (rows(events=[{"number": 1, "event": "A \n dog."}]), ("A dog.",)),
        "opening_utterances": (rows(utterances=[{"number": 1, "text": "Hi."}]), ("Hi.",)),
        "exposure_judgement": ('Well: {"pets": "one"}', {"pets": "one"}),
        "utterance_refinement": (rows(text="Hi."), "Hi."),
        "personal_answers": (
            rows(answers=[{"number": 2, "text": "b"}, {"number": 1, "text": "a"}]),
            ("a", "b"),
        ),
        "answer_reading": (rows(number=0), None),
        "answer_refinement": (rows(text="Walk it."), "Walk it."),
        "exposure_rating": (rows(rating=2), 2),
        "integrity_rating": (rows(rating=0), 0),
        "answer_agreement": (rows(answer=2), 1),
    }
    for prompt in PROMPTS:
        if prompt.kind in replies:
            text, expected = replies[prompt.kind]
            assert prompt.parse(text) == expected, prompt.kind
