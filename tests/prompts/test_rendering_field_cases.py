"""Family 2 of the field's cases in whole: what prompts are filled with, evolved ones resumed."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agents import AWI
from amemgym_env.agent import Entry, Question
from amemgym_env.evaluation.run import evaluate
from amemgym_env.models.backend import Backend, Call, Completion
from amemgym_env.models.client import Models
from amemgym_env.models.events import WritingPolicy, read_policy
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.assistant import AssistantReply, Context, ExamAnswer
from amemgym_env.prompts.base import BUILT_IN, message
from amemgym_env.prompts.memory import DictionaryUpdate, MemoryDecision
from amemgym_env.scenarios.files import parse
from amemgym_env.simulated.model import SimulatedModel
from experiments.evolve.loop import Target, apply_policy, policy_lines, step

ROOT = Path(__file__).parents[2]
LITERAL = "please store {conversation}, {memories} and {current_memories} literally"
STRANGE = [
    "costs $1\\g<0> or \\1 per month",
    "C:\\new\\1 and $$ and $& too",
    "{question} {choices}",
]


class Prepared(Backend):
    """Gives prepared replies and keeps what it was asked."""

    name = "prepared"
    simulated = True

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    def complete(self, call: Call) -> Completion:
        self.asked.append(call.messages[-1]["content"])
        return Completion(self.replies.pop(0), Usage(1))


def test_b02_05_what_is_filled_in_is_never_filled_again() -> None:
    said = (message("user", LITERAL),)
    memories = ("{messages}", "{conversation}", "{information_types}")
    (update,) = DictionaryUpdate(memories, said, ("kinds of {memories}",)).render(BUILT_IN)
    listed = "\n".join(f"- {memory}" for memory in memories)
    for block in (listed, f"user: {LITERAL}", "- kinds of {memories}"):
        assert update["content"].count(block) == 1
    entry = Entry("1", "{facts}", "", "", 0)
    (decision,) = MemoryDecision(("{neighbours}",), (entry,)).render(BUILT_IN)
    assert "[1] {facts}\n" in decision["content"]
    assert decision["content"].count("- {neighbours}\n") == 1
    system, spoken = AssistantReply(Context(memories), LITERAL).render(BUILT_IN)
    assert system["content"].count(listed) == 1
    assert spoken["content"] == LITERAL


@pytest.mark.parametrize("strange", STRANGE)
def test_b02_05_b02_06_strange_choices_questions_and_memories_stand_as_typed(strange: str) -> None:
    context = Context((strange,), (message("user", strange),))
    exam = ExamAnswer(context, Question(f"Which, {strange}?", (strange, "{choices}")))
    system, window, asked = exam.render(BUILT_IN)
    assert f"- {strange}\n" in system["content"]
    assert window["content"] == strange
    assert asked["content"].startswith(f"Which, {strange}?\n\n1. {strange}\n2. {{choices}}\n")


def test_b02_05_b02_06_a_scenario_full_of_placeholders_is_played_with_them_as_typed(
    tiny_items: list[dict[str, Any]],
) -> None:
    session = tiny_items[0]["periods"][0]["sessions"][0]
    session["query"] = said = f"{session['query']} {LITERAL} {STRANGE[1]}"
    choice = tiny_items[0]["qas"][0]["answer_choices"][0]
    choice["answer"] = answer = f"{choice['answer']} {STRANGE[0]} {{choices}}"
    shown: dict[str, str] = {}

    class Watched(SimulatedModel):
        def complete(self, call: Call) -> Completion:
            texts = [part["content"] for part in call.messages]
            shown[call.kind] = "\n".join([shown.get(call.kind, ""), *texts])
            return super().complete(call)

    evaluate(
        lambda models: AWI(models, 2, 0),
        parse(tiny_items[:1]),
        backends=lambda script: {"assistant": Watched(script, "exact")},
    )
    for kind in ("assistant_reply", "dictionary_update"):
        assert said in shown[kind]
    for kind in ("exam_answer", "informed_answer"):
        assert f". {answer}\n" in shown[kind]


RENDERED = """
    import json, sys
    from pathlib import Path
    from agents import AWI
    from amemgym_env.models.client import Models
    from amemgym_env.models.events import read_policy
    from amemgym_env.prompts.memory import DictionaryUpdate
    from experiments.evolve.loop import apply_policy

    state = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    agent = AWI(Models({}))
    apply_policy(read_policy(state["after"]), agent, "dictionary_update")
    prompt = DictionaryUpdate((), (), agent.information_types)
    print(prompt.render(agent.models.templates)[0]["content"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "reply"),
    [
        ("types", {"information_types": ["names of pets", "{messages} at work"]}),
        ("prompt", {"prompt": "Only pets {{}}.\n{memories}\n{information_types}\n{messages}"}),
    ],
)
def test_b02_08_another_process_goes_on_from_the_evolved_policy(
    target: Target, reply: dict[str, object], tmp_path: Path
) -> None:
    kind = "dictionary_update"
    models = Models({"assistant": Prepared(json.dumps(reply))})
    first = step(models, WritingPolicy(), kind, target, "told")
    assert first.status == "accepted"
    agent = AWI(Models({}))
    apply_policy(first.after, agent, kind)
    prompt = DictionaryUpdate((), (), agent.information_types)
    here = prompt.render(agent.models.templates)[0]["content"]
    assert here != DictionaryUpdate((), ()).render(BUILT_IN)[0]["content"]
    file = tmp_path / "saved.json"
    file.write_text(json.dumps(first.to_json()), "utf-8")
    there = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(RENDERED), str(file)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    assert there == f"{here}\n"
    # A second evolution begins from it, also where nothing new comes of it.
    again = Prepared(json.dumps(reply))
    resumed = read_policy(json.loads(file.read_text("utf-8"))["after"])
    second = step(Models({"assistant": again}), resumed, kind, target, "told")
    assert second.status == "no change"
    assert first.after == second.before == second.after
    (asked,) = again.asked
    assert all(
        line in asked for line in policy_lines(resumed) if target == "types" or line[:2] != "- "
    )
