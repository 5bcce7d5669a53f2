"""Family 1 of the field's cases in whole: a model's reply, followed through a run to what it does.

The single forms of a reply stand in `test_replies.py`.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AWE, AWI, Native
from amemgym_env.agent import NO_ANSWER, Question
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.evaluation.bounds import UninformedAnswer
from amemgym_env.evaluation.driver import AgentMaker, made_agent, play
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.evaluation.run import Game, evaluate
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.pipeline.scenario_pipeline import PipelineOptions
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.client import Models
from amemgym_env.models.events import ExamEvent, ProbeEvent
from amemgym_env.models.journal import MemoryJournal
from amemgym_env.models.last_play import calls_in
from amemgym_env.prompts.assistant import Context, ExamAnswer, InformedAnswer
from amemgym_env.prompts.base import BUILT_IN
from amemgym_env.scenarios.files import parse
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.simulated.model import SimulatedModel
from experiments.app.terminal import notes
from tests.generation.cases import PEOPLE, Model, campaign

FENCE = "```"
EXAMS = ("exam_answer", "informed_answer", "uninformed_answer")
EXPLAINED = "Explanation: option 1 looked close."


class Says(SimulatedModel):
    """The simulated model, but for kinds of calls whose replies are given; the last one stays."""

    def __init__(self, script: Script, replies: dict[str, list[str]]) -> None:
        super().__init__(script, "exact")
        self.replies = {kind: list(texts) for kind, texts in replies.items()}

    def complete(self, call: Call) -> Completion:
        texts = self.replies.get(call.kind)
        if texts is None:
            return super().complete(call)
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        return Completion(text, super().complete(call).usage, "stop")


def asked(
    scenario: Scenario, reply: str, game: Game | None = None, kinds: tuple[str, ...] = EXAMS
) -> tuple[Results, list[dict[str, Any]]]:
    """Play a scenario in which the model says `reply` in calls of some kinds."""
    journal = MemoryJournal()
    found = evaluate(
        Native,
        [scenario],
        game=game,
        backends=lambda script: {"assistant": Says(script, {kind: [reply] for kind in kinds})},
        journal=lambda item: nullcontext(journal),
    )
    return found, journal.read()


def remembered(
    make: AgentMaker, scenario: Scenario, **replies: list[str]
) -> tuple[list[str], Models]:
    """Play a scenario to its end; return what the memory then holds, and the models."""
    models = Models({"assistant": Says(build(scenario, "none", 0), replies)})
    env = AMemGymEnv(scenarios=[scenario])
    play(made_agent(make, models), env, lambda event: None, seed=0)
    assert env.episode.over
    return [entry.text for entry in env.episode.bank.entries], models


def choices(items: list[dict[str, Any]], count: int) -> Scenario:
    """Return a scenario with one question of `count` choices; the last is right in the end."""
    item = items[0]
    (question, _) = item["qas"]
    green, black = question["answer_choices"]
    others = [f"drink_{number}" for number in range(3, count + 1)]
    item["state_schema"]["morning_drink"] = ["green_tea", "black_coffee", *others]
    question["answer_choices"] = [
        *({"state": [name], "answer": f"Buy {name}.", "type": "random"} for name in others),
        green,
        black,
    ]
    item["qas"] = [question]
    return parse([item])[0]


@pytest.mark.parametrize(
    "reply",
    [
        'Sure, given your current schedule:\n{"answer": 2}\nHope this helps!',
        f'As you are now:\n{FENCE}json\n{{"answer": 2}}\n{FENCE}\nHope this helps!',
        f'{FENCE}json\n{{"answer": 2}}\n{FENCE}\n{EXPLAINED}',
        f'{FENCE}JSON\r\n{{"answer": 2}}\r\n{FENCE}\r\n{EXPLAINED}',
        f'{FENCE}json5\n{{"answer": 2}}\n{FENCE}\n{EXPLAINED}',
        f'{FENCE}\n{{"answer": 2}}\n{FENCE}\n{EXPLAINED}',
        f'{FENCE}json\n{{"answer": 2}}\n{EXPLAINED}',
    ],
    ids=["prose", "fence", "json", "JSON", "json5", "plain", "open"],
)
def test_b01_01_b01_02_an_answer_amid_prose_and_fences_is_an_answer_like_any(
    tiny: list[Scenario], reply: str
) -> None:
    found, events = asked(tiny[0], reply)
    exams = [event for event in events if isinstance(event, ExamEvent)]
    assert [event.answers for event in exams] == [(1, 1)] * 2
    assert [event.causes for event in exams] == [(None, None)] * 2
    document = found.to_json()
    assert (document["causes"], document["unreadable_calls"]) == ({}, {})


def test_b01_03_backticks_reach_the_memory_as_they_are(tiny: list[Scenario]) -> None:
    value = f"wants {FENCE}python blocks{FENCE} in replies"
    reply = f'{FENCE}json\n{{"note_style": "{value}"}}\n{FENCE}'
    texts, models = remembered(lambda m: AWI(m, 2, 0), tiny[0], dictionary_update=[reply])
    assert texts == [f"note_style: {value}"]
    assert not models.causes


@pytest.mark.parametrize("inside", ["", "nothing new"])
def test_b01_03_a_fence_without_json_is_a_failure_that_leaves_the_memory(
    tiny: list[Scenario], inside: str
) -> None:
    replies = ['{"city": "Bergen"}', f"{FENCE}json\n{inside}\n{FENCE}"]
    texts, models = remembered(lambda m: AWI(m, 2, 0), tiny[0], dictionary_update=replies)
    assert texts == ["city: Bergen"]
    assert models.causes == {"dictionary_update.unreadable": 3}


@pytest.mark.parametrize(
    "reply",
    [
        '<think>maybe {"answer": 1}? no, the user moved</think>\n{"answer": 2}',
        '<THINK>{"answer": 1}</THINK>{"answer": 2}',
        '<think>{</think><think>{"answer": 1}</think>{"answer": 2}',
        'maybe {"answer": 1}? no</think>\n{"answer": 2}',
        '<think>a <think>{"answer": 1}</think> {"answer": 1}</think>{"answer": 2}',
    ],
    ids=["one", "upper", "two", "begun-in-the-prompt", "nested"],
)
def test_b01_04_thoughts_stand_in_the_record_and_are_not_searched(
    tiny: list[Scenario], reply: str
) -> None:
    _, events = asked(tiny[0], reply, kinds=("exam_answer",))
    exams = [event for event in events if isinstance(event, ExamEvent)]
    assert [event.answers for event in exams] == [(1, 1)] * 2
    said = {call.text for call in calls_in(events) if call.kind == "exam_answer"}
    assert said == {reply}


@pytest.mark.parametrize("reply", ['<think>{"answer": 1}</think>', '{"answer": 1} no</think> Hm.'])
def test_b01_04_a_thought_alone_is_no_answer(tiny: list[Scenario], reply: str) -> None:
    found, _ = asked(tiny[0], reply, kinds=("exam_answer",))
    assert found.to_json()["overall"] == 0.0
    assert sum(found.to_json()["causes"].values()) == 4


@pytest.mark.parametrize("reply", ['{"answer": 0}', '{"answer": -1}', '{"answer": -3}'])
def test_b01_08_nothing_below_the_first_choice_is_credited_to_the_last(
    tiny_items: list[dict[str, Any]], reply: str
) -> None:
    scenario = choices(tiny_items, 4)
    found, _ = asked(scenario, reply, Game(shuffle_choices=False))
    (result,) = found.scenarios
    assert result.script.right_shown[-1] == (3,)
    for scores in (result.accuracy, result.upper_bound, result.never_write):
        assert not scores.any()
    assert result.causes == {"unreadable": 2}


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ('{"answer": "2"}', 1),
        ('{"answer": 2.0}', 1),
        ('{"answer": " 2 "}', 1),
        ('{"answer": "Option 2"}', 1),
        ('{"answer": [2]}', 1),
        ('{"answer": "\uff12"}', 1),
        ('{"answer": true}', NO_ANSWER),
        ('{"answer": 2.5}', NO_ANSWER),
        ('{"answer": "two"}', NO_ANSWER),
        ('{"answer": [1, 2]}', NO_ANSWER),
        ('{"answer": null}', NO_ANSWER),
        ('{"answer": 1e999}', NO_ANSWER),
        (f'{{"answer": {"9" * 5000}}}', NO_ANSWER),
        ("ANSWER: None of the above", NO_ANSWER),
        ("Don't know", NO_ANSWER),
        ("A good question, but I lack data", NO_ANSWER),
    ],
    ids=lambda value: str(value)[:30],
)
def test_b01_09_b01_10_exam_upper_bound_and_floor_read_a_reply_alike(
    tiny_items: list[dict[str, Any]], reply: str, chosen: int
) -> None:
    found, _ = asked(choices(tiny_items, 4), reply)
    (result,) = found.scenarios
    assert (result.chosen == chosen).all()
    expected = [[float(right == chosen) for right in row] for row in result.script.right_shown]
    for scores in (result.accuracy, result.upper_bound, result.never_write):
        assert np.array_equal(scores, expected)
    assert result.causes == ({"unreadable": 2} if chosen == NO_ANSWER else {})
    assert result.unscored == 0


@pytest.mark.parametrize("kind", [ExamAnswer, InformedAnswer, UninformedAnswer])
@pytest.mark.parametrize("count", [12, 28])
def test_b01_13_each_of_many_choices_is_named_by_its_whole_number(
    kind: type[ExamAnswer], count: int
) -> None:
    prompt = kind(Context(()), Question("Which?", tuple(f"plan {n}" for n in range(count))))
    shown = prompt.render(BUILT_IN)[-1]["content"]
    assert f"{count}. plan {count - 1}\n" in shown
    for number in range(1, count + 1):
        for reply in (f'{{"answer": {number}}}', f'{{"answer": "{number}"}}', str(number)):
            assert prompt.parse(reply) == number - 1


@pytest.mark.parametrize("count", [12, 28])
def test_b01_13_a_question_of_many_choices_is_played_and_scored(
    tiny_items: list[dict[str, Any]], count: int
) -> None:
    scenario = choices(tiny_items, count)
    for number, right in ((count, 1.0), (int(str(count)[0]), 0.0), (10, 0.0)):
        found, _ = asked(scenario, f'{{"answer": {number}}}', Game(shuffle_choices=False))
        (result,) = found.scenarios
        assert (result.chosen == number - 1).all()
        assert result.accuracy[-1, 0] == right


@pytest.mark.parametrize(
    ("make", "kind", "cut"),
    [
        (AWI, "dictionary_update", '{"diet": "vegan", "employer": "Northw'),
        (AWI, "dictionary_update", '{"diet": {"now": "vegan"}, "employer": "Northw'),
        (AWE, "fact_extraction", '{"facts": ["eats no meat", "works at Northw'),
        (AWE, "memory_decision", '{"operations": [{"op": "ADD", "id": null, "text": "Northw'),
    ],
    ids=["awi", "nested", "facts", "decision"],
)
def test_b01_16_nothing_of_a_cut_update_is_stored(
    tiny: list[Scenario], make: Any, kind: str, cut: str
) -> None:
    texts, models = remembered(lambda m: make(m, 2, 0), tiny[0], **{kind: [cut]})
    assert texts == []
    assert models.causes[f"{kind}.unreadable"] > 0


class CutOnce(Model):
    """Breaks off its first list of questions inside the seventh."""

    def complete(self, call: Call) -> Completion:
        done = super().complete(call)
        if call.kind == "question_drafts" and len(call.messages) == 1:
            parts = done.text.split('"question": ')
            return done._replace(text='"question": '.join(parts[:8])[:-40])
        return done


def test_b01_16_a_list_of_questions_that_breaks_off_is_made_again_in_whole() -> None:
    ten = Settings(periods=2, questions=10, changes_per_period=2)
    for repairs in (0, 1):
        options = PipelineOptions(repairs=repairs, spare_questions=0)
        model = CutOnce()
        outcome = campaign(model, ten, options=options).run(PEOPLE[:1], Path(f"cut-{repairs}"))
        if repairs:
            assert len(outcome.made[0].scenario.qas) == 10
        else:
            assert not outcome.made
            assert outcome.failed[0].step == "questions"
    whole = campaign(Model(), ten, options=PipelineOptions(spare_questions=0))
    assert whole.run(PEOPLE[:1], Path("whole")).made == outcome.made


@pytest.mark.parametrize(
    ("reply", "drink", "causes"),
    [
        ('{"green_tea": "yes", "slow": "yes"}', NO_ANSWER, "unreadable"),
        ('{"morning_drink": ["green_tea"], "walking_pace": ["slow"]}', 0, None),
        (
            '{"morning_drink": ["green_tea", "black_coffee"], "walking_pace": ["slow", "brisk"]}',
            NO_ANSWER,
            "no_answer",
        ),
        ('{"Morning Drink": "Green-Tea ", "WALKING_PACE": " Slow"}', 0, None),
        ('{"morning_drink": null, "walking_pace": null}', NO_ANSWER, "no_answer"),
    ],
    ids=["values-as-keys", "list-of-one", "list-of-all", "case", "null"],
)
def test_b01_17_a_probe_keeps_apart_what_is_known_unknown_and_unreadable(
    tiny: list[Scenario], reply: str, drink: int, causes: str | None
) -> None:
    _, events = asked(tiny[0], reply, kinds=("state_query",))
    probes = [event for event in events if isinstance(event, ProbeEvent)]
    assert [event.values for event in probes] == [((drink,), (drink,))] * 2
    assert [event.causes for event in probes] == [((causes,), (causes,))] * 2


def test_b01_17_a_missing_key_is_no_wrong_memory(tiny: list[Scenario]) -> None:
    def failures(probed: str) -> tuple[dict[str, float], dict[str, int]]:
        said = {"state_query": [probed], "exam_answer": ['{"answer": null}']}
        found = evaluate(
            Native, tiny[:1], backends=lambda script: {"assistant": Says(script, said)}
        ).to_json()
        assert found["overall"] == 0.0
        return found["failures"], found["probe_causes"]

    failed, causes = failures('{"green_tea": "yes"}')
    assert (failed["unattributed"], causes) == (1.0, {"unreadable": 4})
    failed, causes = failures('{"morning_drink": null, "walking_pace": ["slow", "brisk"]}')
    assert (failed["write"], causes) == (1.0, {"no_answer": 4})


@pytest.mark.parametrize(
    ("reply", "left", "unread"),
    [
        ('["likes tea"]', ["city: Bergen"], 3),
        ('"none"', ["city: Bergen"], 3),
        ("3", ["city: Bergen"], 3),
        ("{}", ["city: Bergen"], 0),
        ('{"updates": {"city": "Oslo"}}', ["city: Bergen"], 3),
        ('{"city": null}', [], 0),
        ('{"town": null}', ["city: Bergen"], 0),
        ('{"city": {"old": "Bergen", "new": "Oslo"}}', ["city: Bergen"], 3),
        ('{"city": "Oslo"}', ["city: Oslo"], 0),
    ],
)
def test_b01_19_an_update_of_another_form_changes_nothing_and_the_run_goes_on(
    tiny: list[Scenario], reply: str, left: list[str], unread: int
) -> None:
    replies = ['{"city": "Bergen"}', reply]
    texts, models = remembered(lambda m: AWI(m, 2, 0), tiny[0], dictionary_update=replies)
    assert texts == left
    assert sum(models.causes.values()) == unread


def test_b01_19_what_was_skipped_is_told_beside_the_scores(tiny: list[Scenario]) -> None:
    replies = {"dictionary_update": ['["likes tea"]']}
    found = evaluate(
        lambda models: AWI(models, 2, 0),
        tiny[:1],
        backends=lambda script: {"assistant": Says(script, replies)},
    ).to_json()
    assert found["errors"] == {}
    assert "unreadable replies: 4 dictionary_update.unreadable" in notes(ResultsFile.of(found))


def test_b01_19_a_reply_is_asked_for_again_with_what_was_wrong_and_not_for_ever() -> None:
    model = Model()
    model.wrong = {"Decide the circumstances": '["likes tea"]'}
    (failed,) = (
        campaign(model, options=PipelineOptions(repairs=2)).run(PEOPLE[:1], Path("calls")).failed
    )
    sent = [json.loads(text) for text in model.asked if "Decide the circumstances" in text]
    assert sorted(map(len, sent)) == [1, 3, 5]
    assert "expected a JSON object" in max(sent, key=len)[-1]["content"]
    assert max(sent, key=len)[-2]["content"] == '["likes tea"]'
    assert failed.reason.startswith("no reply of 3 could be used")
