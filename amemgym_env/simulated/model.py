"""The simulated language model: answers every Prompt offline, from the messages alone.

It can read what a script's user says: given a text, it finds the script's utterances and the facts
that it writes itself, and so knows what they give away. It knows nothing else: not the period, not
the state, not which answer is right. Its weaknesses are few, global and named; each is drawn by a
hash keyed with scenario, seed, utterance, variable and mechanism, never with a prompt's text or an
agent's settings, so that agents are compared on the same luck (`weaknesses.py`).

Its results are labelled "simulated". They compare memory policies under stated assumptions; they
are no substitute for a real model's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.models.client import Backend, Call, Completion, Usage
from amemgym_env.prompts.base import Message, message
from amemgym_env.scenarios.answer_model import agreeing_choices
from amemgym_env.scenarios.script import Script
from amemgym_env.simulated.evolution import better_prompt, better_types
from amemgym_env.simulated.information_types import Attention, listed_types
from amemgym_env.simulated.profiles import DEFAULT_PROFILE, PROFILES, Weaknesses, named_profile
from amemgym_env.simulated.recognition import (
    INCIDENTAL,
    Found,
    Recogniser,
    fact_text,
    things,
    user_lines,
    words,
)

CHARACTERS_A_TOKEN = 4
"""For the estimated accounts of simulated calls."""
NOTED_WORDS = 5
"""Words of the user's message that an incidental memory holds."""
RESTATED = 4
"""Beliefs about other matters that a reply works in."""
REPLY_WORDS = 12
"""Words of the user's message that a reply takes up, so that it is found beside the message."""


class Learned(NamedTuple):
    """A value read for a variable, and the place of the memory or message that gave it away."""

    value: str
    place: int


class SimulatedModel(Backend):
    """A language model for the script of one episode.

    `reader` may be shared by models of the same script: it holds nothing but what it has read.
    """

    simulated = True

    def __init__(
        self,
        script: Script,
        profile: str | Weaknesses = DEFAULT_PROFILE,
        reader: Recogniser | None = None,
        attention: Attention | None = None,
    ) -> None:
        self.script = script
        self.weaknesses = named_profile(profile)
        self.attention = attention or Attention()
        self.name = f"simulated/{profile if isinstance(profile, str) else 'custom'}"
        self.unrecognised = 0
        """Lines shown as memories in which nothing was recognised."""
        self._reader = reader or Recogniser(script)
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
            "types_evolution": self._types,
            "prompt_evolution": self._prompt,
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
        """Return advice in the words of the message, and what it takes to be true of its matter."""
        content = call.messages[-1]["content"]
        picked = self._picked("reply", content, REPLY_WORDS)
        reply = (
            f"Here is what I would think about first: {', '.join(picked) or 'your question'}. "
            "Start with the simplest step, see how it goes, and tell me what turns out differently."
        )
        if self.weaknesses.echo == 0.0:
            return reply
        # The matter of a message is plain even where the value that it implies is missed.
        matter = [name for found in self._reader.read(content) for name, _ in found.exposures]
        learned = self._learned(call.messages, len(content), "reply")
        others = sorted(
            (name for name in learned if name not in matter),
            key=lambda name: self._uniform("restated", content, name),
        )
        beliefs = [
            fact_text(name, learned[name].value)
            for name in (*matter, *others[:RESTATED])
            if name in learned
        ]
        return " ".join([reply, *(f"As I understand it, {belief}." for belief in beliefs)])

    def _follow_up(self, call: Call) -> str:
        """Return the script's next utterance after the last one that it finds in the call."""
        spoken = [found.source for found in self._read(call.messages) if found.spoken]
        return self._reader.after(spoken[-1] if spoken else None)

    # What it answers

    def _exam_answer(self, call: Call) -> str:
        content = call.messages[-1]["content"]
        asked = self._reader.question(content)
        if asked is None:
            return "I do not know this question."
        number, start = asked
        shown = self._reader.choices(content[start:], number)
        question = self.script.scenario.qas[number]
        self._count_unrecognised(call.messages)
        learned = self._learned(call.messages, start, f"question {number}")
        known = {name: learned[name].value for name in question.variables if name in learned}
        ranked = sorted(
            range(len(question.answer_choices)),
            key=lambda choice: self._uniform("guess", number, choice),
        )
        agreeing = agreeing_choices(question, known)
        choice = next(index for index in ranked if index in agreeing)
        if len(known) == len(question.variables):
            slipped = self._uniform("slip", number, *known.values()) < self.weaknesses.slip
            if slipped:
                choice = next((index for index in ranked if index != choice), choice)
        return json.dumps({"answer": None if shown is None else shown[choice]})

    def _state_query(self, call: Call) -> str:
        asked = self._reader.variables(call.messages[-1]["content"])
        start = min((place for _, place in asked), default=0)
        self._count_unrecognised(call.messages)
        learned = self._learned(call.messages, start, "state")
        values = {name: learned[name].value if name in learned else None for name, _ in asked}
        return json.dumps(values)

    def _learned(self, messages: list[Message], end: int, mechanism: str) -> dict[str, Learned]:
        """Return what is known from the messages, the last one only up to `end`."""
        before = [*messages[:-1], message(messages[-1]["role"], messages[-1]["content"][:end])]
        shown = _shown(before)
        newest: dict[str, Learned] = {}
        older: dict[str, Learned] = {}
        hearsay: dict[str, Learned] = {}
        recognised = (
            (place, found)
            for place, part in enumerate(shown)
            for found in self._reader.read(part["content"], part["role"])
        )
        for place, found in recognised:
            for variable, value in self._understood(found):
                if self._overlooked(variable, value, len(shown), twice=mechanism == "state"):
                    continue  # an older mention may still stand
                got = Learned(value, place)
                if found.speaker == "assistant" and not self._believed(variable, value):
                    hearsay[variable] = got
                    continue
                known = newest.get(variable)
                if known is not None and known.value != value:
                    older[variable] = known
                newest[variable] = got
        learned = {}
        for variable, got in {**hearsay, **newest}.items():
            old = older.get(variable)
            if old is not None and old.value != got.value:
                key = ("stale", mechanism, variable, old.value, got.value)
                if self._uniform(*key) < self.weaknesses.stale:
                    got = old
            learned[variable] = got
        return learned

    def _overlooked(self, variable: str, value: str, amount: int, *, twice: bool) -> bool:
        """Whether a value is overlooked among so much; `twice`: it is asked for by name."""
        if self.weaknesses.dilution == 0.0:
            return False
        rate = 1.0 - math.exp(-self.weaknesses.dilution * amount / 100)
        if self._uniform("dilution", variable, value) >= rate:
            return False
        return not twice or self._uniform("dilution by name", variable, value) < rate

    def _believed(self, variable: str, value: str) -> bool:
        """Whether what the assistant said counts as if the user had said it."""
        echo = self.weaknesses.echo
        return echo > 0.0 and self._uniform("echo", variable, value) < echo

    def _understood(self, found: Found) -> Iterable[tuple[str, str]]:
        miss = self.weaknesses.comprehension_miss
        if not found.spoken or miss == 0.0:
            return found.exposures
        return [
            pair
            for pair in found.exposures
            if self._uniform("comprehension", found.source, pair[0]) >= miss
        ]

    def _count_unrecognised(self, messages: list[Message]) -> None:
        for part in messages:
            if part["role"] == "system":
                self.unrecognised += self._reader.unrecognised(part["content"])

    # What it writes down

    def _facts(self, call: Call) -> str:
        content = call.messages[-1]["content"]
        facts = [fact_text(variable, value) for variable, value in self._noted(content).items()]
        facts += [f"{INCIDENTAL} {', '.join(matter)}" for matter in self._incidental(content)]
        return json.dumps({"facts": facts}, ensure_ascii=False)

    def _decisions(self, call: Call) -> str:
        stored, new = self._reader.decision(call.messages[-1]["content"])
        concerned = {variable for _, exposures in new for variable, _ in exposures}
        operations = [
            {"op": "DELETE", "id": entry_id, "text": None}
            for entry_id, known in stored.items()
            if known and not concerned & set(known) and self._lost(known, new[-1][0] if new else "")
        ]
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
        read = self._reader.read(content)
        occasion = next((found.source for found in reversed(read) if found.spoken), "")
        changes: dict[str, str | None] = {
            variable.replace("_", " "): None
            for found in read
            if found.speaker == "note" and self._lost(dict(found.exposures), occasion)
            for variable, _ in found.exposures
        }
        for variable, value in noted.items():
            changes[variable.replace("_", " ")] = value.replace("_", " ")
        for matter in self._incidental(content):
            changes[f"{INCIDENTAL} {matter[0]}"] = ", ".join(matter)
        return json.dumps(changes, ensure_ascii=False)

    def _types(self, call: Call) -> str:
        found = better_types(call.messages[-1]["content"], self._uniform)
        return json.dumps({"information_types": found}, ensure_ascii=False)

    def _prompt(self, call: Call) -> str:
        found = better_prompt(call.messages[-1]["content"], self._uniform)
        return json.dumps({"prompt": found}, ensure_ascii=False)

    def _lost(self, known: Mapping[str, str], occasion: str) -> bool:
        """Whether a memory gets lost while memory is rewritten on an occasion."""
        loss = self.weaknesses.rewrite_loss
        return loss > 0.0 and any(
            self._uniform("rewrite", variable, value, occasion) < loss
            for variable, value in known.items()
        )

    def _noted(self, content: str) -> dict[str, str]:
        """Return the values that the model notes of what is said in a transcript."""
        pairs = max(1, len(user_lines(content)))
        listed, base = listed_types(content), self.weaknesses.extraction_miss
        noted = {}
        for found in self._reader.read(content):
            for variable, value in () if found.speaker == "note" else self._understood(found):
                if found.speaker == "assistant" and not self._believed(variable, value):
                    continue
                missed = 1.0 - (1.0 - self.attention.miss(base, variable, listed)) ** pairs
                if self._uniform("extraction", found.source, variable) >= missed:
                    noted[variable] = value
        return noted

    def _incidental(self, content: str) -> list[list[str]]:
        """Return for each message that is noted for nothing in particular the words it is about."""
        if self.weaknesses.chatter == 0.0:
            return []
        said = [re.sub(r"^\[[^\]]*\]", "", line).strip() for line in user_lines(content)]
        noted = [line for line in said if self._uniform("chatter", line) < self.weaknesses.chatter]
        picked = [self._picked("chatter words", line, NOTED_WORDS) for line in noted]
        return [matter for matter in picked if matter]

    def _picked(self, purpose: str, text: str, count: int) -> list[str]:
        return sorted(words(text), key=lambda word: self._uniform(purpose, word))[:count]

    def _read(self, messages: list[Message]) -> list[Found]:
        found: list[Found] = []
        for part in messages:
            found.extend(self._reader.read(part["content"], part["role"]))
        return found

    def _uniform(self, *key: str | int) -> float:
        return self._reader.draw(*key)


def _shown(messages: list[Message]) -> list[Message]:
    """Return what is shown as single things: each memory of a system message, each message."""
    return [
        message(part["role"], text)
        for part in messages
        for text in (things(part["content"]) if part["role"] == "system" else [part["content"]])
    ]


__all__ = [
    "DEFAULT_PROFILE", "PROFILES", "SimulatedModel", "Weaknesses", "fact_text", "named_profile"
]  # fmt: skip
