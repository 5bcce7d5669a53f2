"""Agent that plays a rule of the memory environment in the text environment."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from agents.assistant import Assistant
from amemgym_env.agent import Operation, Turn
from amemgym_env.models.client import Models
from amemgym_env.policies.actions import legal_memory_actions, memory_operations
from amemgym_env.policies.features import FeatureSet, TextFeatures
from amemgym_env.prompts.base import Message
from experiments.baselines.benchmark import PolicyFn


class RuleAgent(Assistant):
    """Decides on every message by a rule over its features; no window, entries as shown.

    Args:
        models: speak and answer.
        rule: looks at observations only, not at the truth.
        capacity: entries of the bank.
        top_k: entries shown for a message or question.
    """

    name = "rule"

    def __init__(self, models: Models, rule: PolicyFn, capacity: int, top_k: int = 5) -> None:
        super().__init__(models, freq=1, ns=0, top_k=top_k)
        self._rule = rule
        self._capacity = capacity
        features = FeatureSet()
        self._features = TextFeatures(features, capacity)
        # A rule finds the columns of an observation by the feature set of what it plays.
        self._played: Any = SimpleNamespace(features=features)
        self._turns = 0

    def reset(self, view: Any) -> None:
        """Begin an episode."""
        super().reset(view)
        self._turns = 0

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Return the rule's operations for the user's message; the reply is not kept."""
        if self.view is None:
            raise RuntimeError("expected reset(view) before the first turn")
        entries = self.view.entries()
        place = (turn.period, turn.session, turn.round)
        observation = self._features.memory(turn.shown, self._turns, place, entries, turn.asked)
        self._turns += 1
        action = int(self._rule(self._played, observation[None])[0])
        if not np.array(legal_memory_actions(len(entries)))[action]:
            return ()
        nearest = self._features.nearest(turn.shown, entries) if action >= 2 and entries else 0
        return memory_operations(action, turn.shown, entries, self._capacity, nearest)

    def store(self, messages: tuple[Message, ...]) -> Sequence[Operation]:
        """Return nothing: `write` has decided on every message already."""
        return ()
