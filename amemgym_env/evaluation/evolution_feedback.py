"""Feedback text for agents that evolve: switches, named sets of switches, evidence, recall.

Only here is truth given to an agent, and only where a switch allows it. Choices bear the numbers
that the agent saw. Paper: AMemGym, Section 5. The released configurations differ from the paper's
text; both have names here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from amemgym_env.agent import NO_ANSWER
from amemgym_env.errors import ConfigError, near
from amemgym_env.scenarios.script import Script

Switch = Literal["questions", "choices", "answers", "truth", "memories", "exposed"]
SWITCHES: tuple[Switch, ...] = get_args(Switch)

NAMED: dict[str, frozenset[Switch]] = {
    "none": frozenset(),
    "question_only": frozenset(("questions",)),
    "complete": frozenset(SWITCHES),
    "released_question_only": frozenset(("questions", "memories")),
    "released_complete": frozenset(("questions", "choices", "answers", "memories")),
}
"""Sets of switches: the paper's text, and what its released configurations do."""


def switches(name: str) -> frozenset[Switch]:
    """Return the switches of a name, or of their own names joined by `+`.

    Raises:
        ConfigError: neither.
    """
    if name in NAMED:
        return NAMED[name]
    parts = name.split("+")
    if not set(parts) <= set(SWITCHES):
        raise ConfigError(
            f"feedback: expected one of {', '.join(NAMED)}, or some of {', '.join(SWITCHES)} "
            f"joined by '+', found {name!r}{near(name, NAMED)}"
        )
    return frozenset(switch for switch in SWITCHES if switch in parts)


@dataclass(frozen=True)
class Asked:
    """One question as the agent saw it, with what it answered."""

    text: str
    choices: tuple[str, ...]
    """In the order shown."""
    answer: int
    """Index shown, or NO_ANSWER or UNSCORED."""
    right: int
    """Index shown."""
    memories: tuple[str, ...]
    """The entries retrieved for it."""


@dataclass(frozen=True)
class Evidence:
    """What happened in one period, from which feedback is made."""

    period: int
    asked: tuple[Asked, ...]
    exposed: tuple[tuple[str, str], ...]
    """(variable, value) pairs that the user gave away in the period."""

    def only(self, numbers: Iterable[int]) -> Evidence:
        """Return the evidence of some questions alone; what was exposed stays out of it."""
        return replace(self, asked=tuple(self.asked[number] for number in numbers), exposed=())

    @property
    def wrong(self) -> int:
        """Number of questions that were not answered rightly."""
        return sum(item.answer != item.right for item in self.asked)


def gather(
    script: Script,
    period: int,
    answers: Sequence[int],
    retrieved: Sequence[Sequence[str]],
    texts: Mapping[str, str],
) -> Evidence:
    """Return the evidence of a period from its exam.

    `answers` are indices shown, `retrieved` the entries' ids for each question, `texts` the texts
    of all entries.
    """
    asked = []
    for number, question in enumerate(script.scenario.qas):
        ids = retrieved[number] if number < len(retrieved) else ()
        asked.append(
            Asked(
                question.query,
                script.choices_shown(number),
                answers[number] if number < len(answers) else NO_ANSWER,
                script.right_shown[period][number],
                tuple(texts[entry] for entry in ids if entry in texts),
            )
        )
    return Evidence(period, tuple(asked), exposed(script, period))


def exposed(script: Script, period: int) -> tuple[tuple[str, str], ...]:
    """Return what the user exposes in a period, each pair once, in order."""
    pairs = (
        pair
        for conversation in script.periods[period]
        for utterance in conversation.utterances
        for pair in utterance.exposures
    )
    return tuple(dict.fromkeys(pairs))


def feedback(evidence: Sequence[Evidence], chosen: frozenset[Switch]) -> str:
    """Return the feedback's text; empty without a switch."""
    if not chosen:
        return ""
    return "\n\n".join(part for item in evidence for part in _parts(item, chosen))


def _parts(evidence: Evidence, chosen: frozenset[Switch]) -> list[str]:
    shared = len({item.memories for item in evidence.asked}) == 1
    parts = []
    for number, item in enumerate(evidence.asked, start=1):
        lines = [f"Question {number}: {item.text}"] if "questions" in chosen else []
        if "choices" in chosen:
            lines += [f"{label}. {choice}" for label, choice in enumerate(item.choices, start=1)]
        if "answers" in chosen:
            lines.append(f"The assistant's answer to question {number}: {_label(item.answer)}")
        if "truth" in chosen:
            lines.append(f"The right answer to question {number}: {_label(item.right)}")
        if "memories" in chosen and not shared:
            lines += _memories(f"Memories retrieved for question {number}:", item.memories)
        if lines:
            parts.append("\n".join(lines))
    if "memories" in chosen and shared:
        heading = "Memories retrieved for every question:"
        parts.append("\n".join(_memories(heading, evidence.asked[0].memories)))
    if "exposed" in chosen and evidence.exposed:
        told = [f"- {name.replace('_', ' ')}: {value.replace('_', ' ')}"
                for name, value in evidence.exposed]  # fmt: skip
        parts.append("\n".join(["What the user gave away in this period:", *told]))
    return parts


def _label(shown: int) -> str:
    """Return a choice's number as the agent saw it, from 1."""
    return str(shown + 1) if shown >= 0 else "none"


def _memories(heading: str, memories: Sequence[str]) -> list[str]:
    return [heading, *(f"- {' '.join(text.split())}" for text in memories or ["(none)"])]


def recall(script: Script, period: int, memories: Iterable[str]) -> tuple[int, int]:
    """Return how many of a period's newly exposed values memories state, and how many there are.

    A value is stated where all its words stand in one memory, in order, or the utterance that
    gives it away stands there verbatim. Paper: factual recall, Section 5.
    """
    known = [_flat(text) for text in memories]
    stated = total = 0
    state = script.scenario.periods[period].state
    for conversation in script.periods[period]:
        for utterance in conversation.utterances:
            for variable, value in utterance.exposures:
                if state.get(variable) != value:
                    continue
                total += 1
                signs = (_flat(value), _flat(utterance.text))
                stated += any(sign in text for sign in signs for text in known)
    return stated, total


def _flat(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split())
