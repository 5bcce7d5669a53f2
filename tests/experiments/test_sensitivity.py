"""Sensitivity to wordings and users: what is drawn again, what stays, and what the job tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.events import TurnEvent
from amemgym_env.models.journal import FileJournal
from amemgym_env.prompts.assistant import KINDS
from amemgym_env.prompts.base import Templates, message
from amemgym_env.scenarios.library import topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Kind, build
from amemgym_env.simulated.model import SimulatedModel
from experiments.app import factories as models
from experiments.app.composition import compose
from experiments.app.settings import CONF, checked
from experiments.sensitivity.paraphrased_user import ParaphrasedUser, paraphrased
from experiments.sensitivity.run import SensitivitySettings, Variant, lines, row, run


def settings(*words: str) -> SensitivitySettings:
    return checked(SensitivitySettings, compose("sensitivity", words))


@pytest.fixture(scope="module")
def generated() -> Scenario:
    return next(iter(named_scenarios("test:1:7")))


def test_redrawn_openers_give_the_same_values_away_in_other_words(generated: Scenario) -> None:
    about = {name: topic(q.topic or "") for q in generated.qas for name in q.variables}
    first, second = paraphrased(generated, 1), paraphrased(generated, 2)
    changed = 0
    for old, new, other in zip(generated.periods, first.periods, second.periods, strict=True):
        assert (old.state, old.updates) == (new.state, new.updates)
        for before, after, third in zip(old.sessions, new.sessions, other.sessions, strict=True):
            assert after.exposed_states == before.exposed_states
            assert after.session_time == before.session_time
            if len(before.exposed_states) == 1:
                ((name, value),) = before.exposed_states.items()
                said = about[name].variables[name][value].exposures
                assert {before.query, after.query, third.query} <= set(said)
                assert len({before.query, after.query, third.query}) == min(3, len(said))
            changed += after.query != before.query
    assert changed > len(generated.periods)
    assert first.qas == generated.qas
    assert build(first).option_orders == build(generated).option_orders


def test_a_file_without_a_library_keeps_its_openers(tiny: list[Scenario]) -> None:
    assert [paraphrased(item, 1) for item in tiny] == tiny


@pytest.mark.parametrize("source", ["library", "tiny"])
def test_redrawn_follow_ups_are_neutral_and_not_the_scripts(
    source: str, generated: Scenario, tiny: list[Scenario]
) -> None:
    script = build(generated if source == "library" else tiny[0])
    neutral = {u.text for u in script.utterances if not u.exposures}
    said = []
    for draw in (1, 2):
        user = ParaphrasedUser(script, draw)
        for conversation in (part for period in script.periods for part in period):
            opener, *later = [utterance.text for utterance in conversation.utterances]
            call = Call("user_follow_up", "user", [message("user", f"You began:\n{opener}")])
            text = user.complete(call).text
            assert text not in later
            assert text == ParaphrasedUser(script, draw).complete(call).text
            said.append(text)
    assert len(set(said) - neutral) > 2
    with pytest.raises(ConfigError, match="words its script's follow-ups"):
        user.complete(Call("user_follow_up", "user", [message("user", "something else")]))


@pytest.mark.slow
def test_the_job_plays_every_variant_and_says_what_is_not_modelled(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = settings("scenarios=tiny", "seeds=2", f"out={out}")
    result = run(given)
    rows = {(row["axis"], row["variant"]): row for row in result["rows"]}
    assert list(rows) == [
        ("wording", "built-in"), ("wording", "plain"), ("user", "script"), ("user", "redrawn-1")
    ]  # fmt: skip
    plain = rows["wording", "plain"]
    assert (plain["modelled"], plain["cells_that_differ"]) == (False, 0)
    assert (plain["scored"], plain["scenarios"], len(plain["scores"])) == (3, 3, 2)
    assert rows["user", "script"]["modelled"]
    said = "\n".join(lines(result))
    assert "not modelled: the simulated model does not read a prompt's wording (0 of 22" in said
    assert "SIMULATED" in said
    written = json.loads((out / "sensitivity.json").read_text(encoding="utf-8"))
    assert written["rows"] == result["rows"]
    assert run(given)["rows"] == result["rows"]  # read, not played again


class Picky(SimulatedModel):
    """Gives no answer to exam questions in the words of one wording."""

    def complete(self, call: Call) -> Completion:
        done = super().complete(call)
        picky = call.kind == "exam_answer" and "Pick the one option" in call.messages[-1]["content"]
        return done._replace(text="I would rather not.") if picky else done


@pytest.mark.slow
def test_a_model_that_reads_wordings_is_seen_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SimulatedModel", Picky)
    result = run(settings("scenarios=tiny", "seeds=1", "users=[script]", f"out={tmp_path}"))
    first, plain, _ = result["rows"]
    assert (first["cells_that_differ"], plain["score"]) == (0, 0.0)
    assert plain["difference"] < 0
    assert plain["interval"][1] < 0
    assert result["range"]["wording"] == pytest.approx(first["score"])
    assert plain["cells_that_differ"] == round(first["score"] * plain["cells"])
    assert "cells differ)" in "\n".join(lines(result))


def turns(folder: Path) -> list[tuple[Any, ...]]:
    return [
        (*event.place, event.message)
        for file in sorted((folder / "seed-0" / "journals").iterdir())
        for event in FileJournal(file).read()
        if isinstance(event, TurnEvent)
    ]


@pytest.mark.slow
def test_the_redrawn_user_speaks_in_the_run_and_the_rest_stays(
    tmp_path: Path, generated: Scenario
) -> None:
    words = ("wordings=[null]", "users=[script,redrawn-1]", "seeds=1", f"out={tmp_path}")
    result = run(settings("scenarios=test:1:7", "evaluate=['agent=rag']", *words))
    script, other = (turns(tmp_path / name) for name in ("0-None-script", "1-None-redrawn-1"))
    assert [turn[:3] for turn in script] == [turn[:3] for turn in other]
    openers = [u.text for u in build(paraphrased(generated, 1)).utterances if u.kind is Kind.OPENER]
    assert [turn[3] for turn in other if turn[2] == 0] == openers
    later = [(one[3], two[3]) for one, two in zip(script, other, strict=True) if one[2]]
    assert later
    assert all(one != two for one, two in later)
    assert result["rows"][-1]["cells_that_differ"] > 0
    assert result["rows"][-1]["sd_of_seeds"] is None
    assert "unknown (seeds=1)" in "\n".join(lines(result))


def document(first: list[Any], second: list[Any], overall: float) -> ResultsFile:
    accuracy = {"a": [first], "b": [second]}
    return ResultsFile.of({
        "label": "mine", "memory": "bank", "mode": "on_policy", "simulated": False,
        "settings": {}, "upper_bound_accuracy": {},
        "scenarios": ["a", "b"], "accuracy": accuracy, "overall": overall,
    })  # fmt: skip


def test_a_row_is_what_hands_work_out() -> None:
    """Scenario a: +.5 under one seed, +1 under the other; b is scored under the second seed."""
    base = [document([0, 0], [1, 1], 0.5), document([0, 0], [1, 1], 0.6)]
    other = [document([1, 0], [None, None], 0.5), document([1, 1], [1, 0], 0.7)]
    found = row("wording", Variant("mine", "script"), other, base, "overall", True)
    assert found["score"] == pytest.approx(0.6)
    assert found["sd_of_seeds"] == pytest.approx(0.2 / 2**0.5)
    assert found["difference"] == pytest.approx((0.75 - 0.5) / 2)
    assert (found["scored"], found["scenarios"]) == (2, 2)
    assert (found["cells"], found["cells_that_differ"]) == (8, 6)


def test_a_scenario_that_no_seed_scored_is_not_counted() -> None:
    base, other = document([0, 0], [1, 1], 0.5), document([1, 0], [None, None], 0.5)
    found = row("user", Variant("mine", "script"), [other], [base], "overall", True)
    assert (found["scored"], found["scenarios"]) == (1, 2)
    assert found["difference"] == pytest.approx(0.5)
    assert found["interval"] == [None, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["users=[scrpt]"], "users: expected script, redrawn-1"),
        (["users=[redrawn-0]"], "users: expected script, redrawn-1"),
        (["users=[script,script]"], "users: expected each once"),
        (["wordings=[null,nowhere]"], "templates: expected a folder"),
        (
            ["users=[script,'user_backend=litellm']"],
            "user_backend.model: expected a value, found none",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_mistake_is_told_before_anything_is_played(
    words: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(settings("scenarios=tiny", f"out={tmp_path / 'out'}", *words))
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_shipped_wordings_can_be_read_and_are_other_words() -> None:
    for folder in (CONF / "prompt_wordings").iterdir():
        texts = Templates.from_folder(folder, KINDS).texts
        assert {"exam_answer", "system_memory"} <= set(texts)
        assert all(text.strip() != KINDS[kind].template.strip() for kind, text in texts.items())
