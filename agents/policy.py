"""Policy assistant: a trained policy edits the memory, the model only speaks and answers.

The policy decides on every user message as soon as it is said, as it was trained; entries are
messages as shown. A model, real or simulated, is its tongue only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.assistant import Assistant
from amemgym_env.agent import MemoryView, Operation, Turn
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.models.client import Models
from amemgym_env.policies.checkpoint import Policy, PolicyWriter
from amemgym_env.prompts.base import Message, message


class PolicyAgent(Assistant):
    """Writes what a trained policy says.

    Args:
        models: speak and answer.
        policy: decides the operations; see `amemgym_env.policies.checkpoint.load`.
        ns: messages kept verbatim in addition to the memory; 0 as in training.
        top_k: entries shown for a message or question.
        embedder: that of the policy's features.
    """

    name = "policy"

    def __init__(
        self,
        models: Models,
        policy: Policy,
        ns: int = 0,
        top_k: int = 5,
        embedder: Embedder = DEFAULT,
    ) -> None:
        super().__init__(models, freq=1, ns=ns, top_k=top_k)
        self._writer = PolicyWriter(policy, embedder)
        self._kind = policy.kind
        self.turns = 0

    @property
    def label(self) -> str:
        """The agent's name with its kind of policy and its two settings."""
        return f"{self.name}-{self._kind}-{self.ns}-{self.top_k}"

    def reset(self, view: MemoryView) -> None:
        """Begin an episode."""
        super().reset(view)
        self.turns = 0

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Return the policy's operations for the user's message; the reply is not kept."""
        if self.view is None:
            raise RuntimeError("expected reset(view) before the first turn")
        place = (turn.period, turn.session, turn.round)
        operations = self._writer.operations(
            turn.shown, self.turns, place, self.view.entries(), turn.asked
        )
        self.turns += 1
        said = [message("user", turn.shown)]
        if reply:
            said.append(message("assistant", reply))
        self.window = [*self.window, *said][-self.ns :] if self.ns else []
        return operations

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return nothing: `write` has decided on every message already."""
        return ()

    def state_dict(self) -> Mapping[str, Any]:
        """Return the window and the number of rounds."""
        return {**super().state_dict(), "turns": self.turns}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with a saved window and number of rounds."""
        super().load_state_dict(state)
        self.turns = int(state["turns"])
