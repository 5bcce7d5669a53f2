"""Difficulty levels: added sessions and mentions, memory capacity, reader confusion."""

from __future__ import annotations

from dataclasses import dataclass, replace

from amemgym_env.errors import ConfigError, near

QUIET_KINDS: tuple[str, ...] = ("minimal_pairs", "other_topics", "small_talk", "other_users")
"""Kinds of messages that expose nothing; `mixed` draws among them."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Additions to a scenario, and the memory limits of the number environments."""

    name: str
    distractor_sessions: int = 0
    """Sessions per period that expose nothing."""
    late: float = 0.0
    """Probability that an exposure follows the session's opener (sessions of >= 2 rounds)."""
    re_mentions: int = 0
    """Rounds per period (from 1 on) in which the user repeats a current value."""
    capacity: int | None = None
    """Entries that the memory bank holds; None: unbounded."""
    top_k: int | None = None
    """Entries retrieved for a message; None: all."""
    confusion: float = 0.0
    """Probability that the answer model reads a stale value instead of the newest."""
    quiet_messages: str = "mixed"
    """Kind of the distractor sessions' messages: one of `QUIET_KINDS`, or `mixed`."""

    def __post_init__(self) -> None:
        """Refuse an unknown kind of quiet messages."""
        kinds = (*QUIET_KINDS, "mixed")
        if self.quiet_messages not in kinds:
            raise ConfigError(
                f"quiet_messages: expected one of {', '.join(kinds)}, found "
                f"{self.quiet_messages!r}{near(self.quiet_messages, kinds)}"
            )


DIFFICULTIES: dict[str, Difficulty] = {
    "none": Difficulty("none"),
    "easy": Difficulty("easy", capacity=16, top_k=10),
    "default": Difficulty("default", 2, 0.3, 1, 12, 5, 0.2),
    "hard": Difficulty("hard", 4, 0.5, 2, 12, 5, 0.3),
}


def named_difficulty(difficulty: str | Difficulty, quiet_messages: str | None = None) -> Difficulty:
    """Return a difficulty by its name, or the given one, with a kind of quiet messages if given.

    Raises:
        ConfigError: no difficulty has the name, or there is no such kind.
    """
    if quiet_messages is not None:
        return replace(named_difficulty(difficulty), quiet_messages=quiet_messages)
    if isinstance(difficulty, Difficulty):
        return difficulty
    if difficulty not in DIFFICULTIES:
        raise ConfigError(
            f"difficulty: expected one of {', '.join(DIFFICULTIES)}, found {difficulty!r}"
            f"{near(difficulty, DIFFICULTIES)}"
        )
    return DIFFICULTIES[difficulty]
