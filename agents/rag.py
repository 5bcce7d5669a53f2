"""RAG-(freq, ns, topk): an index of raw messages, found by similarity."""

from __future__ import annotations

from collections.abc import Sequence

from agents.assistant import Assistant
from amemgym_env.agent import Operation
from amemgym_env.prompts.base import Message


class RAG(Assistant):
    """Stores each message as it is, with its role in front."""

    name = "rag"

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return an ADD for each message."""
        return [Operation.add(f"{part['role']}: {part['content']}") for part in messages]
