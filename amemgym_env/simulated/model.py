"""The simulated language model: answers every Prompt offline, from the messages alone.

It recognises a script's utterances, and the facts that it writes itself, in the text it is shown,
and knows which values they expose. It knows nothing else: neither the period nor the state nor the
right answer. `profiles.py` defines its error rates. Each error is drawn by a hash keyed with
scenario, seed, utterance, variable and mechanism, never with a prompt's text or an agent's
settings, so all agents meet the same errors.

Its results are labelled "simulated". They compare memory policies under stated assumptions and do
not replace results of a real model.
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
from amemgym_env.simulated.information_types import InformationTypeEffect, listed_types
from amemgym_env.simulated.profiles import DEFAULT_PROFILE, PROFILES, ErrorRates, named_profile
from amemgym_env.simulated.recognition import (
    INCIDENTAL,
    Found,
    Recogniser,
    fact_text,
    listed_memories,
    user_lines,
    words,
)

CHARACTERS_A_TOKEN = 4
"""Characters counted as one token in the estimated usage."""
NOTED_WORDS = 5
"""Words of the user's message in an irrelevant memory."""
RESTATED = 4
"""Beliefs about other topics that a reply restates."""
REPLY_WORDS = 12
"""Words of the user's message that a reply repeats, so both are retrieved together."""


class Belief(NamedTuple):
    """The value believed for a variable, and the position of the text that exposed it."""

    value: str
    place: int


class SimulatedModel(Backend):
    """A language model for the script of one episode.

    Models of the same script may share one `recogniser`: it only caches what it has read.
    """

    simulated = True

    def __init__(
        self,
        script: Script,
        profile: str | ErrorRates = DEFAULT_PROFILE,
        recogniser: Recogniser | None = None,
        type_effect: InformationTypeEffect | None = None,
    ) -> None:
        self.script = script
        self.rates = named_profile(profile)
        self.type_effect = type_effect or InformationTypeEffect()
        self.name = f"simulated/{profile if isinstance(profile, str) else 'custom'}"
        self.unrecognised = 0
        """Number of memory lines in which nothing was recognised."""
        self._recogniser = recogniser or Recogniser(script)
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

    # Replies

    def _reply(self, call: Call) -> str:
        """Return advice in the words of the message, and the beliefs about its topic."""
        content = call.messages[-1]["content"]
        picked = self._picked("reply", content, REPLY_WORDS)
        reply = (
            f"Here is what I would think about first: {', '.join(picked) or 'your question'}. "
            "Start with the simplest step, see how it goes, and tell me what turns out differently."
        )
        if self.rates.echo == 0.0:
            return reply
        # The topic of a message is recognised even where its value is missed.
        topic = [name for found in self._recogniser.read(content) for name, _ in found.exposures]
        beliefs = self._beliefs(call.messages, len(content), "reply")
        others = sorted(
            (name for name in beliefs if name not in topic),
            key=lambda name: self._uniform("restated", content, name),
        )
        restated = [
            fact_text(name, beliefs[name].value)
            for name in (*topic, *others[:RESTATED])
            if name in beliefs
        ]
        return " ".join([reply, *(f"As I understand it, {belief}." for belief in restated)])

    def _follow_up(self, call: Call) -> str:
        """Return the script's next utterance after the last one that it finds in the call."""
        spoken = [found.source for found in self._read(call.messages) if found.spoken]
        return self._recogniser.after(spoken[-1] if spoken else None)

    # Answers

    def _exam_answer(self, call: Call) -> str:
        content = call.messages[-1]["content"]
        asked = self._recogniser.question(content)
        if asked is None:
            return "I do not know this question."
        number, start = asked
        shown = self._recogniser.choices(content[start:], number)
        question = self.script.scenario.qas[number]
        self._count_unrecognised(call.messages)
        beliefs = self._beliefs(call.messages, start, f"question {number}")
        known = {name: beliefs[name].value for name in question.variables if name in beliefs}
        ranked = sorted(
            range(len(question.answer_choices)),
            key=lambda choice: self._uniform("guess", number, choice),
        )
        agreeing = agreeing_choices(question, known)
        choice = next(index for index in ranked if index in agreeing)
        if len(known) == len(question.variables):
            slipped = self._uniform("slip", number, *known.values()) < self.rates.answer_error
            if slipped:
                choice = next((index for index in ranked if index != choice), choice)
        return json.dumps({"answer": None if shown is None else shown[choice]})

    def _state_query(self, call: Call) -> str:
        asked = self._recogniser.variables(call.messages[-1]["content"])
        start = min((place for _, place in asked), default=0)
        self._count_unrecognised(call.messages)
        beliefs = self._beliefs(call.messages, start, "state")
        values = {name: beliefs[name].value if name in beliefs else None for name, _ in asked}
        return json.dumps(values)

    def _beliefs(self, messages: list[Message], end: int, mechanism: str) -> dict[str, Belief]:
        """Return the beliefs formed from the messages, the last one only up to `end`."""
        before = [*messages[:-1], message(messages[-1]["role"], messages[-1]["content"][:end])]
        shown = _shown(before)
        newest: dict[str, Belief] = {}
        older: dict[str, Belief] = {}
        assistant_claims: dict[str, Belief] = {}
        recognised = (
            (place, found)
            for place, part in enumerate(shown)
            for found in self._recogniser.read(part["content"], part["role"])
        )
        for place, found in recognised:
            for variable, value in self._understood(found):
                if self._overlooked(
                    variable, value, len(shown), asked_by_name=mechanism == "state"
                ):
                    continue  # an older mention may remain
                got = Belief(value, place)
                if found.speaker == "assistant" and not self._believed(variable, value):
                    assistant_claims[variable] = got
                    continue
                known = newest.get(variable)
                if known is not None and known.value != value:
                    older[variable] = known
                newest[variable] = got
        beliefs = {}
        for variable, got in {**assistant_claims, **newest}.items():
            old = older.get(variable)
            if old is not None and old.value != got.value:
                key = ("stale", mechanism, variable, old.value, got.value)
                if self._uniform(*key) < self.rates.stale:
                    got = old
            beliefs[variable] = got
        return beliefs

    def _overlooked(self, variable: str, value: str, amount: int, asked_by_name: bool) -> bool:
        """Return whether a value is overlooked among `amount` texts; a state query names it."""
        if self.rates.dilution == 0.0:
            return False
        rate = 1.0 - math.exp(-self.rates.dilution * amount / 100)
        if self._uniform("dilution", variable, value) >= rate:
            return False
        return not asked_by_name or self._uniform("dilution by name", variable, value) < rate

    def _believed(self, variable: str, value: str) -> bool:
        """Return whether a claim of the assistant is taken for the user's own."""
        echo = self.rates.echo
        return echo > 0.0 and self._uniform("echo", variable, value) < echo

    def _understood(self, found: Found) -> Iterable[tuple[str, str]]:
        miss = self.rates.comprehension_miss
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
                self.unrecognised += self._recogniser.unrecognised(part["content"])

    # Memory writes

    def _facts(self, call: Call) -> str:
        content = call.messages[-1]["content"]
        facts = [fact_text(variable, value) for variable, value in self._noted(content).items()]
        facts += [f"{INCIDENTAL} {', '.join(words_)}" for words_ in self._incidental(content)]
        return json.dumps({"facts": facts}, ensure_ascii=False)

    def _decisions(self, call: Call) -> str:
        stored, new = self._recogniser.decision(call.messages[-1]["content"])
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
        read = self._recogniser.read(content)
        occasion = next((found.source for found in reversed(read) if found.spoken), "")
        changes: dict[str, str | None] = {
            variable.replace("_", " "): None
            for found in read
            if found.speaker == "note" and self._lost(dict(found.exposures), occasion)
            for variable, _ in found.exposures
        }
        for variable, value in noted.items():
            changes[variable.replace("_", " ")] = value.replace("_", " ")
        for words_ in self._incidental(content):
            changes[f"{INCIDENTAL} {words_[0]}"] = ", ".join(words_)
        return json.dumps(changes, ensure_ascii=False)

    def _types(self, call: Call) -> str:
        found = better_types(call.messages[-1]["content"], self._uniform)
        return json.dumps({"information_types": found}, ensure_ascii=False)

    def _prompt(self, call: Call) -> str:
        found = better_prompt(call.messages[-1]["content"], self._uniform)
        return json.dumps({"prompt": found}, ensure_ascii=False)

    def _lost(self, known: Mapping[str, str], occasion: str) -> bool:
        """Return whether a memory is lost when memory is rewritten after `occasion`."""
        loss = self.rates.rewrite_loss
        return loss > 0.0 and any(
            self._uniform("rewrite", variable, value, occasion) < loss
            for variable, value in known.items()
        )

    def _noted(self, content: str) -> dict[str, str]:
        """Return the values that the model extracts from a transcript."""
        pairs = max(1, len(user_lines(content)))
        listed, base = listed_types(content), self.rates.extraction_miss
        noted = {}
        for found in self._recogniser.read(content):
            for variable, value in () if found.speaker == "note" else self._understood(found):
                if found.speaker == "assistant" and not self._believed(variable, value):
                    continue
                missed = 1.0 - (1.0 - self.type_effect.miss(base, variable, listed)) ** pairs
                if self._uniform("extraction", found.source, variable) >= missed:
                    noted[variable] = value
        return noted

    def _incidental(self, content: str) -> list[list[str]]:
        """Return the words of each message that is stored although no question needs it."""
        if self.rates.irrelevant_writes == 0.0:
            return []
        said = [re.sub(r"^\[[^\]]*\]", "", line).strip() for line in user_lines(content)]
        noted = [
            line for line in said if self._uniform("chatter", line) < self.rates.irrelevant_writes
        ]
        picked = [self._picked("chatter words", line, NOTED_WORDS) for line in noted]
        return [found for found in picked if found]

    def _picked(self, purpose: str, text: str, count: int) -> list[str]:
        return sorted(words(text), key=lambda word: self._uniform(purpose, word))[:count]

    def _read(self, messages: list[Message]) -> list[Found]:
        found: list[Found] = []
        for part in messages:
            found.extend(self._recogniser.read(part["content"], part["role"]))
        return found

    def _uniform(self, *key: str | int) -> float:
        return self._recogniser.draw(*key)


def _shown(messages: list[Message]) -> list[Message]:
    """Return single texts: each memory of a system message, and each other message."""
    return [
        message(part["role"], text)
        for part in messages
        for text in (
            listed_memories(part["content"]) if part["role"] == "system" else [part["content"]]
        )
    ]


__all__ = [
    "DEFAULT_PROFILE",
    "PROFILES",
    "ErrorRates",
    "SimulatedModel",
    "fact_text",
    "named_profile"
]  # fmt: skip
