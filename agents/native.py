"""The native assistant: the whole dialogue in its context, no long-term memory."""

from __future__ import annotations

from collections.abc import Sequence

from agents.assistant import Assistant
from amemgym_env.agent import Entry, Operation, Turn
from amemgym_env.models.client import Models
from amemgym_env.prompts.assistant import Context
from amemgym_env.prompts.base import Message


class Native(Assistant):
    """Sees every earlier message of all sessions, without a system message."""

    name = "native"

    def __init__(self, models: Models) -> None:
        super().__init__(models, top_k=0)

    @property
    def label(self) -> str:
        """The agent's name: it has no settings."""
        return self.name

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Keep the round; nothing ever leaves the window."""
        self.window.append({"role": "user", "content": turn.shown})
        if reply:
            self.window.append({"role": "assistant", "content": reply})
        return ()

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return nothing: there is no long-term memory."""
        return ()

    def context(self, memory: Sequence[Entry]) -> Context:
        """Return the whole dialogue."""
        return Context(None, tuple(self.window))
