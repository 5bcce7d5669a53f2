"""Evolution of a memory prompt by the simulated model, from the text of the feedback alone.

It lists what the feedback names: exposed variables, the words of questions (of wrongly answered
ones where the feedback marks them), and the labels of retrieved memories. It cannot judge whether
they are relevant.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from amemgym_env.memory.embedding import terms
from amemgym_env.prompts.memory import INFORMATION_TYPES
from amemgym_env.simulated.information_types import HEADING
from amemgym_env.simulated.recognition import INCIDENTAL

MOST_NEW = 12
"""Types that one proposal adds."""
MOST_SPECIAL = 20
"""Special types that a list keeps at most; the latest are kept."""
DOUBT = 0.25
"""Probability that a later proposal omits a candidate type."""

_NO_LABELS = ("- user:", "- assistant:", f"- {INCIDENTAL}")
Draw = Callable[..., float]
"""A keyed draw in [0, 1)."""


def better_types(content: str, draw: Draw) -> list[str]:
    """Return a new list of information types for a call to improve one."""
    _, _, rest = content.partition("\nThe list now:\n")
    present, _, after = rest.partition("\n\nFeedback:\n")
    listed = [line[2:] for line in present.split("\n") if line.startswith("- ")]
    general = [kind for kind in listed if kind in INFORMATION_TYPES]
    special = [kind for kind in listed if kind not in INFORMATION_TYPES]
    return [*general, *[*special, *_new(after, listed, draw)][-MOST_SPECIAL:]]


def better_prompt(content: str, draw: Draw) -> str:
    """Return a new prompt for a call to improve one: special types below the listed ones."""
    _, _, rest = content.partition("<prompt>\n")
    prompt, _, after = rest.partition("\n</prompt>\n")
    place = f"{HEADING}\n{{information_types}}"
    if place not in prompt:
        return prompt
    head, _, tail = prompt.partition(place)
    lines, _, end = tail.partition("\n\n")
    listed = [line[2:] for line in lines.split("\n") if line.startswith("- ")]
    special = [*listed, *_new(after, listed, draw)][-MOST_SPECIAL:]
    return "".join([head, place, *(f"\n- {kind}" for kind in special), "\n\n", end])


def _new(feedback: str, listed: list[str], draw: Draw) -> list[str]:
    number = re.search(r"This is proposal (\d+) of", feedback)
    which = int(number[1]) if number else 1
    found = dict.fromkeys([*_exposed(feedback), *_of_questions(feedback), *_labels(feedback)])
    candidates = [kind for kind in found if kind not in listed]
    if which > 1:
        candidates = [kind for kind in candidates if draw("proposal", which, kind) >= DOUBT]
    return candidates[:MOST_NEW]


def _exposed(feedback: str) -> list[str]:
    """Return the variables whose values the user exposed."""
    return _before_colons(feedback, r"What the user gave away in this period:\n((?:- .*\n?)+)")


def _labels(feedback: str) -> list[str]:
    """Return the labels of retrieved memories that have labels."""
    return _before_colons(feedback, r"Memories retrieved for [^\n]*:\n((?:- .*\n?)+)")


def _before_colons(feedback: str, section: str) -> list[str]:
    return [
        line[2:].partition(":")[0].strip()
        for lines in re.findall(section, feedback)
        for line in lines.split("\n")
        if ": " in line and not line.startswith(_NO_LABELS)
    ]


def _of_questions(feedback: str) -> list[str]:
    """Return the words of wrongly answered questions, or of all where none is marked."""
    asked = dict(re.findall(r"^Question (\d+): (.*)$", feedback, re.MULTILINE))
    given = dict(re.findall(r"answer to question (\d+): (\w+)$", feedback, re.MULTILINE))
    right = dict(re.findall(r"right answer to question (\d+): (\w+)$", feedback, re.MULTILINE))
    said = re.findall(r"assistant's answer to question (\d+): (\w+)$", feedback, re.MULTILINE)
    wrong = {number for number, answer in said if right and right.get(number) != answer}
    chosen = wrong if right and given else set(asked)
    return [
        "matters of " + " ".join(dict.fromkeys(_content_words(text)))
        for number, text in asked.items()
        if number in chosen
    ]


def _content_words(text: str) -> list[str]:
    return [word for word in re.findall(r"[a-z]{4,}", text.lower()) if terms(word)]
