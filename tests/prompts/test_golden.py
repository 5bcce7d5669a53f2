"""Golden texts of all kinds of prompts, and filling of templates in a single pass.

A change of a text that can move a score raises its version: run with AMEMGYM_GOLDEN=write then.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amemgym_env.prompts
from amemgym_env.prompts import generation
from amemgym_env.prompts.assistant import versions
from amemgym_env.prompts.base import BUILT_IN, Prompt, Templates, fill
from tests.prompts.examples import EXAMPLES

GOLDEN = Path(__file__).parent / "golden"
PARTS: dict[str, dict[str, str]] = {
    "system_memory": {"memories": "- likes tea"},
    "generation_repair": {"problem": "expected a list"},
}
"""Templates that other prompts contain, with contents for their placeholders."""


def registry() -> dict[str, type[Prompt[Any]]]:
    """Return the class of every kind of prompt that the package defines."""
    for module in pkgutil.walk_packages(amemgym_env.prompts.__path__, "amemgym_env.prompts."):
        importlib.import_module(module.name)
    found: dict[str, type[Prompt[Any]]] = {}
    classes: list[type[Prompt[Any]]] = [Prompt]
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        if hasattr(one, "kind") and one.__module__.startswith("amemgym_env."):
            found.setdefault(one.kind, one)
    return found


KINDS = registry()


def test_each_kind_of_prompt_has_an_example_and_its_placeholders() -> None:
    assert set(EXAMPLES) | set(PARTS) == set(KINDS)
    assert {file.name.split(".")[0] for file in GOLDEN.iterdir()} == set(KINDS)
    assert set(versions()) | set(generation.versions()) <= set(KINDS)
    for prompt in KINDS.values():
        assert all(f"{{{name}}}" in prompt.template for name in prompt.placeholders)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_prompt_has_the_text_of_its_golden_file(kind: str) -> None:
    prompt = KINDS[kind]
    if kind in PARTS:
        text = BUILT_IN.fill(prompt, PARTS[kind])
        with pytest.raises(TypeError):
            prompt().render(BUILT_IN)
    else:
        rendered = EXAMPLES[kind].render(BUILT_IN)
        text = "\n\n".join(f"[{part['role']}]\n{part['content']}" for part in rendered)
    file = GOLDEN / f"{kind}.v{prompt.version}.txt"
    if os.environ.get("AMEMGYM_GOLDEN") == "write":
        file.write_text(text + "\n", encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text + "\n", (
        f"the text of {kind} changed: raise its version and write its golden file anew"
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
