"""AWI: a dictionary of facts that a model maintains, all of it in the context.

Each label is one entry of the bank, its text `label: fact`. Labels are compared without case, outer
space and separators, so one attribute is not split by spelling; a label holds one text, which a
later one replaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.assistant import ALL, Assistant
from amemgym_env.agent import Operation
from amemgym_env.memory.bank import in_time_order
from amemgym_env.models.client import Models
from amemgym_env.prompts.base import Message
from amemgym_env.prompts.memory import INFORMATION_TYPES, DictionaryUpdate, Labelled
from amemgym_env.prompts.parsing import normal


class AWI(Assistant):
    """Merges a model's update into the dictionary; everything is shown, in order of time."""

    name = "awi"

    def __init__(
        self,
        models: Models,
        freq: int = 2,
        ns: int = 4,
        information_types: Sequence[str] = INFORMATION_TYPES,
    ) -> None:
        super().__init__(models, freq, ns, ALL)
        self.information_types = tuple(information_types)

    @property
    def label(self) -> str:
        """The agent's name with its two settings."""
        return f"{self.name}-{self.freq}-{self.ns}"

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return the operations that merge the model's update; unreadable: nothing."""
        if self.view is None:
            raise RuntimeError("expected reset(view) before the first turn")
        entries = in_time_order(self.view.entries())
        memories = tuple(entry.text for entry in entries)
        updated = self.models.ask(DictionaryUpdate(memories, messages, self.information_types))
        ids = {normal(_label(entry.text)): entry.id for entry in entries}
        merged = {normal(change.label): change for change in updated.value or ()}
        return [
            operation
            for key, change in merged.items()
            if (operation := _operation(change, ids.get(key))) is not None
        ]


def _operation(change: Labelled, entry_id: str | None) -> Operation | None:
    if change.text is None:
        return None if entry_id is None else Operation.delete(entry_id)
    text = f"{change.label.replace(':', ' ')}: {change.text}"
    return Operation.add(text) if entry_id is None else Operation.update(entry_id, text)


def _label(text: str) -> str:
    return text.partition(":")[0]
