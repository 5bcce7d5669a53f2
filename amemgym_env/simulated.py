"""The simulated language model: answers every Prompt offline, from the messages alone.

It can read what a script's user says: given a text, it finds the script's utterances and the facts
that it writes itself, and so knows what they give away. It knows nothing else: not the period, not
the state, not which answer is right. Its weaknesses are few, global and named; each is drawn by a
hash keyed with scenario, seed, utterance, variable and mechanism, never with a prompt's text or an
agent's settings, so that agents are compared on the same luck.

Its results are labelled "simulated". They compare memory policies under stated assumptions; they
are no substitute for a real model's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from amemgym_env.backend import Backend, Call, Completion, Usage
from amemgym_env.errors import ConfigError
from amemgym_env.prompt import Message, message
from amemgym_env.randomness import uniform
from amemgym_env.reader import agreeing_choices
from amemgym_env.script import Exposures, Script


@dataclass(frozen=True, slots=True)
class Weaknesses:
    """What the simulated model gets wrong, as probabilities in [0, 1] or rates."""

    comprehension_miss: float = 0.0
    """A value given away by an utterance is not understood, whoever reads it and whenever."""
    extraction_miss: float = 0.0
    """A value is not noted when facts are extracted, per message pair of the batch read."""
    rewrite_loss: float = 0.0
    """A remembered value is forgotten each time the in-context memory is rewritten."""
    dilution: float = 0.0
    """Rate at which a known value is overlooked, per 10,000 characters shown."""
    stale: float = 0.0
    """An old value is taken although a newer one is shown beside it."""
    slip: float = 0.0
    """All is known and the answer is wrong all the same."""


PROFILES: dict[str, Weaknesses] = {
    "exact": Weaknesses(),
    "confusion_only": Weaknesses(stale=0.2),
}

CHARACTERS_A_TOKEN = 4
"""For the estimated accounts of simulated calls."""


class Found(NamedTuple):
    """Something that the model recognises in a text: where from, and what it gives away."""

    source: str
    exposures: Exposures
    spoken: bool
    """Whether it is an utterance of the user (implicit), not a fact that the model wrote."""


class Learned(NamedTuple):
    """A value read for a variable, with the text that it was read from."""

    value: str
    source: str


class SimulatedModel(Backend):
    """A language model for the script of one episode."""

    simulated = True

    def __init__(self, script: Script, profile: str | Weaknesses = "confusion_only") -> None:
        self.script = script
        self.weaknesses = named_profile(profile)
        self.name = f"simulated/{profile if isinstance(profile, str) else 'custom'}"
        self.unrecognised = 0
        """Lines shown as memories in which nothing was recognised."""
        self._reader = _Recogniser(script)
        self._answers: dict[str, Callable[[Call], str]] = {
            "assistant_reply": self._reply,
            "user_follow_up": self._follow_up,
            "exam_answer": self._exam_answer,
            "informed_answer": self._exam_answer,
            "uninformed_answer": self._exam_answer,
            "state_query": self._state_query,
            "fact_extraction": self._facts,
            "memory_decision": self._decisions,
            "dictionary_update": self._dictionary,
        }

    def complete(self, call: Call) -> Completion:
        """Return the reply to a call, with tokens estimated from the number of characters."""
        answer = self._answers.get(call.kind)
        if answer is None:
            raise ConfigError(
                f"the simulated model answers {sorted(self._answers)}, found {call.kind!r}; "
                "use backend=litellm for this call"
            )
        text = answer(call)
        shown = sum(len(part["content"]) for part in call.messages)
        tokens = (shown // CHARACTERS_A_TOKEN, len(text) // CHARACTERS_A_TOKEN + 1)
        return Completion(text, Usage(1, *tokens, usd=0.0, estimated=True), "stop")

    # What it says

    def _reply(self, call: Call) -> str:
        """Return advice about the words of the message, so that it is found beside them."""
        words = list(dict.fromkeys(re.findall(r"[a-z]{5,}", call.messages[-1]["content"].lower())))
        picked = sorted(words, key=lambda word: self._uniform("reply", word))[:4]
        return (
            f"Here is what I would think about first: {', '.join(picked) or 'your question'}. "
            "Start with the simplest step, see how it goes, and tell me what turns out differently."
        )

    def _follow_up(self, call: Call) -> str:
        """Return the script's next utterance after the last one that it finds in the call."""
        spoken = [found.source for found in self._read(call.messages) if found.spoken]
        return self._reader.after(spoken[-1] if spoken else None)

    # What it answers

    def _exam_answer(self, call: Call) -> str:
        asked = self._reader.question(call.messages[-1]["content"])
        if asked is None:
            return "I do not know this question."
        number, start, shown = asked
        question = self.script.scenario.qas[number]
        learned = self._learned(call.messages, start, f"question {number}")
        known = {name: got.value for name, got in learned.items() if name in question.variables}
        ranked = sorted(
            range(len(question.answer_choices)),
            key=lambda choice: self._uniform("guess", number, choice),
        )
        agreeing = agreeing_choices(question, known)
        choice = next(index for index in ranked if index in agreeing)
        sources = sorted(got.source for name, got in learned.items() if name in known)
        slipped = self._uniform("slip", number, *sources) < self.weaknesses.slip
        if slipped and len(known) == len(question.variables):
            choice = next((index for index in ranked if index != choice), choice)
        return json.dumps({"answer": shown[choice]})

    def _state_query(self, call: Call) -> str:
        asked = self._reader.variables(call.messages[-1]["content"])
        start = min((place for _, place in asked), default=0)
        learned = self._learned(call.messages, start, "state")
        values = {name: learned[name].value if name in learned else None for name, _ in asked}
        return json.dumps(values)

    def _learned(self, messages: list[Message], end: int, mechanism: str) -> dict[str, Learned]:
        """Return what is known from the messages, the last one only up to `end`."""
        before = [*messages[:-1], message("user", messages[-1]["content"][:end])]
        amount = sum(len(part["content"]) for part in before) / 10_000
        overlooked = 1.0 - math.exp(-self.weaknesses.dilution * amount)
        for part in before:
            if part["role"] == "system":
                self.unrecognised += self._reader.unrecognised(part["content"])
        newest: dict[str, Learned] = {}
        older: dict[str, Learned] = {}
        for found in self._read(before):
            for variable, value in self._understood(found):
                known = newest.get(variable)
                if known is not None and known.value != value:
                    older[variable] = known
                newest[variable] = Learned(value, found.source)
        learned = {}
        for variable, got in newest.items():
            old = older.get(variable)
            if old is not None and old.value != got.value:
                key = ("stale", mechanism, variable, old.value, got.value)
                if self._uniform(*key) < self.weaknesses.stale:
                    got = old
            if self._uniform("dilution", mechanism, variable, got.value) >= overlooked:
                learned[variable] = got
        return learned

    def _understood(self, found: Found) -> Iterable[tuple[str, str]]:
        miss = self.weaknesses.comprehension_miss
        if not found.spoken or miss == 0.0:
            return found.exposures
        return [
            pair
            for pair in found.exposures
            if self._uniform("comprehension", found.source, pair[0]) >= miss
        ]

    # What it writes down

    def _facts(self, call: Call) -> str:
        facts = [
            fact_text(variable, value)
            for variable, value in self._noted(call.messages[-1]["content"]).items()
        ]
        return json.dumps({"facts": facts}, ensure_ascii=False)

    def _decisions(self, call: Call) -> str:
        stored, new = self._reader.decision(call.messages[-1]["content"])
        operations = []
        for text, exposures in new:
            operation = {"op": "ADD", "id": None, "text": text}
            for variable, value in exposures:
                for entry_id, known in stored.items():
                    if known.get(variable) is not None:
                        same = known[variable] == value
                        operation = (
                            {"op": "NOOP", "id": entry_id, "text": None}
                            if same
                            else {"op": "UPDATE", "id": entry_id, "text": text}
                        )
                        if not same:
                            known[variable] = value
                        break
            operations.append(operation)
        return json.dumps({"operations": operations}, ensure_ascii=False)

    def _dictionary(self, call: Call) -> str:
        content = call.messages[-1]["content"]
        noted = self._noted(content)
        spoken = [found.source for found in self._reader.read(content) if found.spoken]
        changes: dict[str, str | None] = {}
        for found in self._reader.read(content):
            for variable, value in () if found.spoken else found.exposures:
                lost = self._uniform("rewrite", variable, value, *spoken[-1:])
                if lost < self.weaknesses.rewrite_loss:
                    changes[variable.replace("_", " ")] = None
        for variable, value in noted.items():
            changes[variable.replace("_", " ")] = value.replace("_", " ")
        return json.dumps(changes, ensure_ascii=False)

    def _noted(self, content: str) -> dict[str, str]:
        """Return the values that the model notes of the user's utterances in a text."""
        pairs = max(1, len(re.findall(r"^user:", content, re.MULTILINE)))
        miss = 1.0 - (1.0 - self.weaknesses.extraction_miss) ** pairs
        noted = {}
        for found in self._reader.read(content):
            if not found.spoken:
                continue
            for variable, value in self._understood(found):
                if self._uniform("extraction", found.source, variable) >= miss:
                    noted[variable] = value
        return noted

    def _read(self, messages: list[Message]) -> list[Found]:
        found: list[Found] = []
        for part in messages:
            found.extend(self._reader.read(part["content"]))
        return found

    def _uniform(self, *key: str | int) -> float:
        return uniform("simulated", self.script.scenario.id, self.script.seed, *key)


def named_profile(profile: str | Weaknesses) -> Weaknesses:
    """Return a profile's weaknesses by its name, or the given ones.

    Raises:
        ConfigError: no profile has the name.
    """
    if isinstance(profile, Weaknesses):
        return profile
    if profile not in PROFILES:
        raise ConfigError(f"backend.profile: expected one of {list(PROFILES)}, found {profile!r}")
    return PROFILES[profile]


def fact_text(variable: str, value: str) -> str:
    """Return the sentence in which the simulated model notes a value."""
    return f"{variable.replace('_', ' ')}: {value.replace('_', ' ')}"


class _Recogniser:
    """Finds a script's utterances, facts and questions in texts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.patterns: dict[str, Found] = {}
        for utterance in script.utterances:
            text = _flat(utterance.text)
            if utterance.exposures or text not in self.patterns:
                self.patterns[text] = Found(utterance.text, utterance.exposures, True)
        schema = script.scenario.state_schema
        for variable, values in schema.items():
            for value in values:
                text = _flat(fact_text(variable, value))
                self.patterns[text] = Found(text, ((variable, value),), False)
        # Patterns by their first word, longest first, so that a line is scanned once.
        self.starts: dict[str, list[str]] = {}
        for text in sorted(self.patterns, key=len, reverse=True):
            first = _WORD.search(text)
            if first is not None:
                self.starts.setdefault(first[0].lower(), []).append(text)
        self.offsets = {
            text: match.start() for text in self.patterns if (match := _WORD.search(text))
        }
        self.read = lru_cache(maxsize=65536)(self._read)
        self.unrecognised = lru_cache(maxsize=4096)(self._unrecognised)
        self.question = lru_cache(maxsize=4096)(self._question)
        self._next = self._successors()

    def _read(self, content: str) -> tuple[Found, ...]:
        """Return what is recognised in a text, in order of appearance."""
        flat = _flat(content)
        found = []
        position = 0
        for word in _WORD.finditer(flat):
            if word.start() < position:
                continue
            for text in self.starts.get(word[0].lower(), ()):
                start = word.start() - self.offsets[text]
                end = start + len(text)
                if (
                    start >= 0
                    and flat.startswith(text, start)
                    and not flat[end : end + 1].isalnum()
                ):
                    found.append(self.patterns[text])
                    position = end
                    break
        return tuple(found)

    def _unrecognised(self, content: str) -> int:
        """Return how many memories of a system message say nothing that is recognised."""
        memories = content.split("\n- ")[1:]
        said = [memory for memory in memories if not memory.startswith("assistant:")]
        return sum(1 for memory in said if not self._read(memory))

    def _question(self, content: str) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (question, where it begins, shown number of each stored choice), if recognised."""
        for number, question in enumerate(self.script.scenario.qas):
            start = content.find(question.query)
            if start < 0:
                continue
            shown = [
                self._number(content, start, choice.answer) for choice in question.answer_choices
            ]
            if None not in shown:
                return number, start, tuple(shown)  # type: ignore[arg-type]
        return None

    @staticmethod
    def _number(content: str, start: int, answer: str) -> int | None:
        match = re.compile(r"(\d+)[.)]\s*" + re.escape(answer) + r"(?=\n|\Z)").search(
            content, start
        )
        return int(match[1]) if match else None

    def variables(self, content: str) -> list[tuple[str, int]]:
        """Return the variables that a state query lists, with their places in the text."""
        found = []
        for variable in self.script.scenario.variables:
            match = re.search(rf"(?<!\w){re.escape(variable)}(?=\s*:)", content)
            if match is not None:
                found.append((variable, match.start()))
        return found

    def decision(
        self, content: str
    ) -> tuple[dict[str, dict[str, str]], list[tuple[str, Exposures]]]:
        """Return stored entries by id with what they say, and new facts with what they say."""
        stored: dict[str, dict[str, str]] = {}
        new: list[tuple[str, Exposures]] = []
        for line in content.split("\n"):
            entry = re.match(r"\s*\[([^\]]+)\]\s*(.*)", line)
            exposures = tuple(pair for found in self.read(line) for pair in found.exposures)
            if entry is not None:
                stored[entry[1]] = dict(exposures)
            elif line.startswith("- ") and not re.match(r"- (ADD|UPDATE|DELETE|NOOP):", line):
                new.append((line[2:], exposures))
        return stored, new

    def _successors(self) -> dict[str, str]:
        following: dict[str, str] = {}
        for conversations in self.script.periods:
            for conversation in conversations:
                texts = [utterance.text for utterance in conversation.utterances]
                following.update(pairwise(texts))
        return following

    def after(self, spoken: str | None) -> str:
        """Return what the script's user says after an utterance."""
        return self._next.get(
            spoken or "", "Thank you, that helps. Is there anything else to consider?"
        )


_WORD = re.compile(r"\w+")


def _flat(text: str) -> str:
    return re.sub(r"[\s_]+", " ", text)


__all__ = ["PROFILES", "Found", "SimulatedModel", "Weaknesses", "fact_text", "named_profile"]
