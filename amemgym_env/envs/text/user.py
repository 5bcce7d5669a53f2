"""Follow-ups of the simulated user, from a user model or the script."""

from __future__ import annotations

from collections.abc import Callable

from amemgym_env.episode import Episode
from amemgym_env.errors import BackendError, BudgetExceeded, ParseError
from amemgym_env.text import storable

UserModel = Callable[[Episode, str], str | None]
"""(episode before the step, the assistant's reply) -> the user's next message, or None."""


class UserVoice:
    """Caller of a user model; counts its failures."""

    def __init__(self, model: UserModel | None) -> None:
        self._model = model
        self.calls = 0
        self.failures = 0
        """Calls without a usable message: an error, None or blank text."""

    def follow_up(self, episode: Episode, reply: str) -> tuple[str | None, BackendError | None]:
        """Return the next follow-up (None: the script's), and the error that ends the episode.

        Only a spent budget ends it; every other failure of the model is counted and bridged.
        """
        if self._model is None or not episode.next_is_follow_up:
            return None, None
        self.calls += 1
        text: str | None = None
        error: BackendError | None = None
        try:
            text = self._model(episode, reply)
        except BudgetExceeded as failure:
            error = failure
        except (BackendError, ParseError):
            pass
        if text is None or not text.strip():
            self.failures += 1
            return None, error
        return storable(text), None
