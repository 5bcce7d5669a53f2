"""Recognition of a script's utterances, the model's own facts and questions in texts.

A text is read line by line. A line is the user's, the assistant's (its message, or a stored one
with its role in front), or a memory that the model wrote. The user's own words take precedence
over the assistant's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from amemgym_env.scenarios.script import Exposures, Script
from amemgym_env.seeding import uniform

Speaker = Literal["user", "assistant", "note"]
"""Origin of a recognised text; a note is a memory that the model wrote."""

INCIDENTAL = "The user spoke of"
"""Prefix of a memory that no question needs."""


class Found(NamedTuple):
    """A recognised text, its origin and the values that it exposes."""

    source: str
    exposures: Exposures
    speaker: Speaker
    spoken: bool
    """True for an utterance of the script, False for a fact that states the value."""


class Decision(NamedTuple):
    """The two lists of a memory decision."""

    stored: dict[str, dict[str, str]]
    """Stored entries by id, with the values that they expose."""
    new: list[tuple[str, Exposures]]
    """New facts, with the values that they expose."""


def fact_text(variable: str, value: str) -> str:
    """Return the sentence in which the simulated model stores a value."""
    return f"{variable.replace('_', ' ')}: {value.replace('_', ' ')}"


class Recogniser:
    """Finds a script's utterances, facts and questions in texts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._patterns: dict[str, Found] = {}
        for utterance in script.utterances:
            text = _flat(utterance.text)
            if utterance.exposures or text not in self._patterns:
                self._patterns[text] = Found(utterance.text, utterance.exposures, "user", True)
        for variable, values in script.scenario.state_schema.items():
            for value in values:
                text = _flat(fact_text(variable, value))
                self._patterns[text] = Found(text, ((variable, value),), "note", False)
        # Patterns by their first word, longest first, so that a line is scanned once.
        self._starts: dict[str, list[str]] = {}
        self._offsets: dict[str, int] = {}
        for text in sorted(self._patterns, key=len, reverse=True):
            first = _WORD.search(text)
            if first is not None:
                self._starts.setdefault(first[0].lower(), []).append(text)
                self._offsets[text] = first.start()
        # Lines are read one by one; utterances of several lines are joined beforehand.
        self._broken = sorted({u.text for u in script.utterances if "\n" in u.text}, key=len)[::-1]
        self._line = lru_cache(maxsize=65536)(self._read_line)
        self.read = lru_cache(maxsize=16384)(self._read)
        self.unrecognised = lru_cache(maxsize=4096)(self._unrecognised)
        self.question = lru_cache(maxsize=4096)(self._question)
        self.choices = lru_cache(maxsize=4096)(self._choices)
        self.draw = lru_cache(maxsize=1 << 18)(self._draw)
        self._next = dict(
            pair
            for conversations in script.periods
            for conversation in conversations
            for pair in pairwise(utterance.text for utterance in conversation.utterances)
        )

    def _draw(self, *key: str | int) -> float:
        """Return a draw in [0, 1) that depends on the key alone."""
        return uniform("simulated", self.script.scenario.id, self.script.seed, *key)

    def _read(self, content: str, role: str = "user") -> tuple[Found, ...]:
        """Return what is recognised in a message of a role, in order of appearance."""
        for text in self._broken:
            content = content.replace(text, _flat(text))
        outer: Speaker = "assistant" if role == "assistant" else "note"
        speaker, found = outer, []
        for line in content.split("\n"):
            marked = _MARKED.match(line)
            if marked is not None:
                speaker = "assistant" if marked[1] == "assistant" else "user"
            elif line.startswith("- "):
                speaker = outer
            for item in self._line(line):
                if speaker == "assistant":
                    item = item._replace(speaker="assistant")
                found.append(item)
        return tuple(found)

    def _read_line(self, line: str) -> tuple[Found, ...]:
        flat = _flat(line)
        found = []
        position = 0
        for word in _WORD.finditer(flat):
            if word.start() < position:
                continue
            for text in self._starts.get(word[0].lower(), ()):
                start = word.start() - self._offsets[text]
                end = start + len(text)
                if (
                    start >= 0
                    and flat.startswith(text, start)
                    and not flat[end : end + 1].isalnum()
                ):
                    found.append(self._patterns[text])
                    position = end
                    break
        return tuple(found)

    def _unrecognised(self, content: str) -> int:
        """Return the number of memories of a system message in which nothing is recognised."""
        return sum(
            not memory.startswith(("assistant:", INCIDENTAL)) and not self.read(memory)
            for memory in content.split("\n- ")[1:]
        )

    def _question(self, content: str) -> tuple[int, int] | None:
        """Return the number of the question in a text and its position, if recognised."""
        for number, question in enumerate(self.script.scenario.qas):
            start = content.find(question.query)
            if start >= 0 and self.choices(content[start:], number) is not None:
                return number, start
        return None

    def _choices(self, content: str, question: int) -> tuple[int, ...] | None:
        """Return the shown number of each stored choice, if all are shown."""
        shown = []
        for choice in self.script.scenario.qas[question].answer_choices:
            number = _shown_number(content, choice.answer)
            if number is None:
                return None
            shown.append(number)
        return tuple(shown)

    def variables(self, content: str) -> list[tuple[str, int]]:
        """Return the variables that a state query lists, with their places in the text."""
        found = []
        for variable in self.script.scenario.variables:
            match = re.search(rf"(?<!\w){re.escape(variable)}(?=\s*:)", content)
            if match is not None:
                found.append((variable, match.start()))
        return found

    def decision(self, content: str) -> Decision:
        """Return the stored entries and new facts of a memory decision."""
        known = Decision({}, [])
        for line in content.split("\n"):
            entry = _ENTRY.match(line)
            exposures = tuple(pair for found in self._line(line) for pair in found.exposures)
            if entry is not None:
                known.stored[entry[1]] = dict(exposures)
            elif line.startswith("- ") and not _RULE.match(line):
                known.new.append((line[2:], exposures))
        return known

    def after(self, spoken: str | None) -> str:
        """Return the script's next user utterance after the given one."""
        return self._next.get(
            spoken or "", "Thank you, that helps. Is there anything else to consider?"
        )


def _shown_number(content: str, answer: str) -> int | None:
    """Return the number in front of a choice that ends its line; plain search, as it is fast."""
    place = content.find(answer)
    while place >= 0:
        end = place + len(answer)
        label = _LABEL.search(content, max(0, place - 12), place)
        if label is not None and content[end : end + 1] in ("", "\n"):
            return int(label[1])
        place = content.find(answer, place + 1)
    return None


def user_lines(content: str) -> list[str]:
    """Return the user's messages of a transcript."""
    parts: list[str] = []
    speaking = False
    for line in content.split("\n"):
        marked = _MARKED.match(line)
        if marked is not None:
            speaking = marked[1] == "user"
            if speaking:
                parts.append(line[marked.end() :])
        elif speaking and line.strip():
            parts[-1] += f" {line}"
        elif not line.strip():
            speaking = False
    return parts


def words(text: str, least: int = 5) -> list[str]:
    """Return the longer words of a text in lower case, each once, in order."""
    return list(dict.fromkeys(re.findall(rf"[a-z]{{{least},}}", text.lower())))


def listed_memories(content: str) -> list[str]:
    """Return the memories that a system message lists."""
    return content.split("\n- ")[1:]


_WORD = re.compile(r"\w+")
_MARKED = re.compile(r"\s*(?:- )?(user|assistant):\s?")
_LABEL = re.compile(r"(\d+)[.)]\s*\Z")
_ENTRY = re.compile(r"\s*\[([^\]]+)\]\s*(.*)")
_RULE = re.compile(r"- (ADD|UPDATE|DELETE|NOOP):")


def _flat(text: str) -> str:
    return re.sub(r"[\s_]+", " ", text)
