"""A language model in the role of the user."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from amemgym_env.agent import Variable
from amemgym_env.episode import Episode
from amemgym_env.errors import BackendError, TransportError
from amemgym_env.models.client import Models, Outcome
from amemgym_env.prompts.assistant import UserFollowUp
from amemgym_env.prompts.base import message


class UserModel:
    """A real model in the role of the user: words the follow-ups of a script.

    A follow-up depends on the dialogue alone, not on the memory: it may begin while the agent
    still writes. When it fails, the script's own words take its place; failures are counted.
    Paper: AMemGym, Section 3.3.
    """

    def __init__(self, models: Models) -> None:
        self.models = models
        self.failures = 0
        self._begun: Callable[[], Outcome[str]] | None = None

    def begin(self, episode: Episode, reply: str) -> None:
        """Ask for what the user says after `reply`, if there is anything to say."""
        prompt = self._prompt(episode, reply) if episode.next_is_follow_up else None
        self._begun = None if prompt is None else self.models.begin(prompt)

    def settle(self) -> None:
        """Wait for a follow-up that was begun and is no longer needed, so that it is recorded."""
        begun, self._begun = self._begun, None
        if begun is not None:
            with suppress(BackendError):
                begun()

    def __call__(self, episode: Episode, reply: str) -> str | None:
        """Return what the user says after `reply`, or None for the script's words."""
        if self._begun is None:
            self.begin(episode, reply)
        begun, self._begun = self._begun, None
        if begun is None:
            return None
        try:
            outcome = begun()
        except TransportError:
            self.failures += 1
            return None
        if outcome.value is None:
            self.failures += 1
        return outcome.value

    def _prompt(self, episode: Episode, reply: str) -> UserFollowUp | None:
        scenario = episode.script.scenario
        conversation = episode.conversation
        if conversation is None:
            return None
        variables = tuple(
            Variable(name, tuple(known)) for name, known in scenario.state_schema.items()
        )
        opener = episode.dialogue[0][0] if episode.dialogue else episode.message
        return UserFollowUp(
            scenario.profile_text,
            scenario.periods[episode.place.period].period_end,
            opener,
            (message("user", episode.message), message("assistant", reply)),
            variables,
        )
