"""Replies drawn from `data/grammar.md`, each with the choice that a person reads in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from amemgym_env.seeding import uniform

T = TypeVar("T")

WHY = (
    "You drink tea in the morning.",
    "Option 4 looked close, but you moved.",
    "Because you said so in May (see entry 3).",
    "Given {your} schedule, this fits best.",
    "You have 2 dogs and 10 plants.",
    "The <b>first</b> plan is for runners.",
)
THOUGHTS = ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad")


class Draws:
    """A series of draws, the same for the same name."""

    def __init__(self, name: str) -> None:
        self._name, self._number = name, 0

    def random(self) -> float:
        self._number += 1
        return uniform("reply", self._name, self._number)

    def randint(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def choice(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]


def reply(rng: Draws, count: int) -> tuple[str, int | None]:
    """Return a reply and its choice from 1; None: a person cannot tell."""
    number = rng.randint(1, count)
    kind = rng.random()
    if kind < 0.70:
        return _thought(rng, count) + _framed(rng, _verdict(rng, number)), number
    if kind < 0.78:
        first = _verdict(rng, number)
        return f"{first}\n\n{rng.choice(WHY)}\n\n{_labelled(rng, number)}", number
    other = number % count + 1
    if kind < 0.84:
        sign = rng.choice(("Wait, ", "Actually, ", "Correction: ", "Sorry, "))
        return f"{_labelled(rng, other)}\n{sign}{_sentence(number)}", number
    if kind < 0.90:
        level = rng.choice((_object, _labelled, _boxed))
        return f"{level(rng, number)}\n{level(rng, other)}".replace("Final answer", "Answer"), None
    if kind < 0.95:
        tag = rng.choice(THOUGHTS)
        return f"<{tag}>{_object(rng, number)} {rng.choice(WHY)}", None
    return rng.choice(
        (
            f'{{"answer": {number}, "why": "cut',
            f'{{"answer": {{"draft": {number}',
            f"If the answer is {number}, you are lucky.",
            f"The answer is not {number}.",
            f"The answer is {number} or {other}.",
            rng.choice(WHY),
            '{"answer": null}',
            f'{{"answer": {count + 1}}}',
            "",
        )
    ), None


def _thought(rng: Draws, count: int) -> str:
    if rng.random() < 0.6:
        return ""
    tag = rng.choice(THOUGHTS)
    inside = f"{rng.choice(WHY)} maybe {_object(rng, rng.randint(1, count))}?"
    end = f"</{tag}>{rng.choice(('', ' ', chr(10), chr(10) * 2))}"
    return inside + end if rng.random() < 0.3 else f"<{tag}>\n{inside}\n{end}"


def _framed(rng: Draws, verdict: str) -> str:
    before = rng.choice(("", "", "Sure!\n\n", f"{rng.choice(WHY)}\n\n"))
    after = rng.choice(("", "", "<|im_end|>", "\n", f"\n\n{rng.choice(WHY)}"))
    if verdict.startswith(("{", "```", "Answer", "**A", "Final", "The", "\\", "ANSWER")):
        return f"{before}{verdict}{after}"
    return f"{verdict}{after}"


def _verdict(rng: Draws, number: int) -> str:
    return rng.choice((_object, _object, _labelled, _boxed, _bare))(rng, number)


def _value(rng: Draws, number: int) -> str:
    return rng.choice(
        (str(number), f"{number}.0", f'"{number}"', f'"Option {number}"', f"[{number}]",
         f'" {number} "', f'"{number}."', f'"**{number}**"')
    )  # fmt: skip


def _object(rng: Draws, number: int) -> str:
    more = rng.choice(("", '"why": "the <think> tag {here}", ', '"sure": true, '))
    text = f'{{{more}"answer": {_value(rng, number)}}}'
    return rng.choice(
        (text, text, f"```json\n{text}\n```", f"```\n{text}\n```", text.replace("}", ",}"))
        if not more.startswith('"why')
        else (text,)
    )


def _marked(rng: Draws, number: int) -> str:
    left, right = rng.choice(
        (("", ""), ("**", "**"), ("`", "`"), ("$", "$"), ("(", ")"), ("[", "]"), ("", "."))
    )
    return f"{left}{number}{right}"


def _bare(rng: Draws, number: int) -> str:
    return rng.choice(("", "", "Option ", "Choice ")) + _marked(rng, number)


def _sentence(number: int) -> str:
    return f"the answer is {number}."


def _labelled(rng: Draws, number: int) -> str:
    label = rng.choice(
        ("Answer: ", "**Answer:** ", "ANSWER: ", "Final answer: ", "The answer is ",
         "The best option is option ", "Answer: Option ")
    )  # fmt: skip
    end = rng.choice(("", "", ".", " (the second one)", " because you like tea"))
    return f"{label}{_marked(rng, number).rstrip('.')}{end}"


def _boxed(rng: Draws, number: int) -> str:
    return rng.choice(
        (f"$\\boxed{{{number}}}$", f"\\boxed{{{number}}}", f"\\boxed{{\\text{{{number}}}}}")
    )
