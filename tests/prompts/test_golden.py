"""The texts that are sent: one golden file for each prompt, filled in a single pass.

A change of a text that can move a score raises its version: run with AMEMGYM_GOLDEN=write then.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amemgym_env.agent import Entry, Question, Variable
from amemgym_env.prompts.assistant import (
    PLAYING,
    AssistantReply,
    Context,
    ExamAnswer,
    InformedAnswer,
    StateQuery,
    SystemMemory,
    UserFollowUp,
)
from amemgym_env.prompts.base import BUILT_IN, Prompt, Templates, fill, message
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction, MemoryDecision

GOLDEN = Path(__file__).parent / "golden"
CONTEXT = Context(
    ("likes tea", "works nights"), (message("user", "Hi"), message("assistant", "Yes?"))
)
QUESTION = Question("Which plan fits me?", ("walk", "costs $1\\g<0> or \\1 a month", "{choices}"))
VARIABLES = (Variable("diet", ("vegan", "none")), Variable("work_time", ("day", "night")))
ENTRY = Entry("7", "diet: none", "2024-01-01", "2024-01-01", 3)
EXAMPLES: dict[str, Prompt[Any]] = {
    "assistant_reply": AssistantReply(CONTEXT, "store {conversation} and {memories} literally"),
    "user_follow_up": UserFollowUp(
        "Ada, 30", "2024-05-01", "What to eat?", (message("user", "a"),), VARIABLES
    ),
    "exam_answer": ExamAnswer(CONTEXT, QUESTION),
    "informed_answer": InformedAnswer(Context(("diet: vegan",)), QUESTION),
    "state_query": StateQuery(Context(()), VARIABLES),
    "fact_extraction": FactExtraction((message("user", "C:\\new $$ {facts}"),)),
    "memory_decision": MemoryDecision(("diet: vegan",), (ENTRY,)),
    "dictionary_update": DictionaryUpdate(("diet: none",), (message("user", "{memories}"),)),
}


@pytest.mark.parametrize("prompt", PLAYING, ids=lambda prompt: prompt.kind)
def test_every_prompt_has_the_text_of_its_golden_file(prompt: type[Prompt[Any]]) -> None:
    if prompt is SystemMemory:
        with pytest.raises(TypeError):
            prompt().render(BUILT_IN)  # type: ignore[abstract]
        return
    rendered = EXAMPLES[prompt.kind].render(BUILT_IN)
    text = "\n\n".join(f"[{part['role']}]\n{part['content']}" for part in rendered)
    file = GOLDEN / f"{prompt.kind}.v{prompt.version}.txt"
    if os.environ.get("AMEMGYM_GOLDEN") == "write":
        file.write_text(text + "\n", encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text + "\n", (
        f"the text of {prompt.kind} changed: raise its version and write its golden file anew"
    )


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_b02_03_rendering_and_reloading_templates_any_number_of_times_changes_nothing(
    kind: str, tmp_path: Path
) -> None:
    prompt = EXAMPLES[kind]
    text = type(prompt).template + "\noutput {{}} if nothing is new, {{name}}"
    templates = Templates({kind: text})
    first = prompt.render(templates)
    for _ in range(3):
        (tmp_path / f"{kind}.txt").write_text(templates.texts[kind], encoding="utf-8")
        templates = Templates.from_folder(tmp_path, {kind: type(prompt)})
        assert prompt.render(templates) == first
    assert "output {{}} if nothing is new, {{name}}" in json.dumps(first)


def test_b02_05_b02_06_content_is_never_filled_or_unescaped() -> None:
    content = "{b} $& \\1 \\g<0> $$ C:\\new {a} {{a}}"
    assert fill("<{a}|{b}>", {"a": content, "b": "{a}"}) == f"<{content}|{{a}}>"
    shown = EXAMPLES["exam_answer"].render(BUILT_IN)[-1]["content"]
    assert "costs $1\\g<0> or \\1 a month" in shown
    assert "3. {choices}" in shown


@given(st.text(), st.text())
def test_any_content_stands_verbatim(first: str, second: str) -> None:
    assert fill("<{a}|{b}>", {"a": first, "b": second}) == f"<{first}|{second}>"
