"""AWE-(freq, ns, topk): an index of facts that a model extracts and keeps up to date."""

from __future__ import annotations

from collections.abc import Sequence

from agents.assistant import Assistant
from amemgym_env.agent import Entry, Operation
from amemgym_env.models.client import Models
from amemgym_env.prompts.base import Message
from amemgym_env.prompts.memory import INFORMATION_TYPES, FactExtraction, MemoryDecision

NEIGHBOURS = 5
"""Stored entries that each new fact is compared with before the model decides."""


class AWE(Assistant):
    """Extracts facts from what leaves the window and reconciles them with stored ones."""

    name = "awe"

    def __init__(
        self,
        models: Models,
        freq: int = 2,
        ns: int = 4,
        top_k: int = 30,
        information_types: Sequence[str] = INFORMATION_TYPES,
    ) -> None:
        super().__init__(models, freq, ns, top_k)
        self.information_types = tuple(information_types)

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return what the model decides about the facts in the messages; unreadable: nothing."""
        extracted = self.models.ask(FactExtraction(messages, self.information_types))
        if not extracted.value:
            return ()
        decided = self.models.ask(
            MemoryDecision(extracted.value, self._neighbours(extracted.value))
        )
        return decided.value or ()

    def _neighbours(self, facts: tuple[str, ...]) -> tuple[Entry, ...]:
        """Return the entries nearest to any of the facts, each once, oldest first."""
        if self.view is None:
            raise RuntimeError("expected reset(view) before the first turn")
        found = [entry for fact in facts for entry in self.view.search(fact, NEIGHBOURS)]
        by_id = {entry.id: entry for entry in found}
        return tuple(sorted(by_id.values(), key=lambda entry: (entry.turn, entry.id)))
