"""Exceptions of the project, as one tree.

```
AMemGymError
├── InputError            a file, set, config or folder is not what it must be (exit status 2)
│   ├── ScenarioError     a scenario file; lists every offender
│   ├── ConfigError       a setting, a name, a template
│   └── RunError          a run's folder or journal
├── ActionError           an action of the wrong type (also a TypeError)
├── EpisodeOver           a step after the end
├── GenerationError       a model could not make a scenario; names the step
├── ParseError            a model's reply cannot be read: that is its answer, and recorded
└── BackendError          a call could not be answered
    ├── ContentError      the provider answered, with nothing to read (empty, filtered, too long)
    ├── TransportError    network, rate limit, server: all that may be retried
    └── BudgetExceeded    the run's budget is spent
```

A message says what was expected, what was found, where, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

Cause = Literal["no_answer", "unreadable", "empty", "filtered", "context_exceeded"]
"""Why a cell scored 0 although no choice was read; the names are keys of `results.json`."""


Reason = Literal[
    "rate_limit", "server_error", "timeout", "disconnect", "rejected", "offline", "stopped", "other"
]
"""What kept a model from being asked, so that there is no score.

The provider's limit (429), its server (5xx), no answer in time, the network; a request that it will
not take; a call that the record does not hold; a budget that is spent, or Ctrl-C.
"""


def near(word: object, known: Iterable[str]) -> str:
    """Return a question after the names that a wrong word is like, for the end of a message."""
    alike = difflib.get_close_matches(str(word), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(alike)}?" if alike else ""


class AMemGymError(Exception):
    """Base of all errors of the project."""


class InputError(AMemGymError, ValueError):
    """Something given to the project from outside is wrong; nothing was played or written."""


class ScenarioError(InputError):
    """A scenario file is wrong. `problems` holds one line for each offender."""

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        """Join the message and its problems into one readable text."""
        self.problems = problems
        super().__init__("\n".join((message, *(f"  - {problem}" for problem in problems))))


class ConfigError(InputError):
    """A setting has an unknown name or a value outside its range."""


class RunError(InputError):
    """A run's folder or journal is missing, torn in the middle, or belongs to another run."""


class ActionError(AMemGymError, TypeError):
    """An action does not have the type that the action space declares."""


class EpisodeOver(AMemGymError, RuntimeError):
    """The episode has ended; call `reset()` first."""


class GenerationError(AMemGymError):
    """A persona's scenario could not be made; the others are unharmed."""

    def __init__(self, step: str, reason: str) -> None:
        """Keep the step that failed and why."""
        self.step = step
        self.reason = reason
        super().__init__(f"{step}: {reason}")


class ParseError(AMemGymError, ValueError):
    """A model's reply cannot be read as what its Prompt asked for.

    Never raised for transport: the reply arrived, and this is the model's answer.
    """

    def __init__(self, message: str, cause: Cause = "unreadable") -> None:
        """Keep the cause under which the reply is counted."""
        self.cause: Cause = cause
        super().__init__(message)


class BackendError(AMemGymError):
    """A call of a model could not be answered."""

    reason: Reason = "other"


class ContentError(BackendError):
    """The provider answered with nothing to read; never retried as transport."""

    def __init__(self, message: str, cause: Cause) -> None:
        """Keep the cause under which the reply is counted."""
        self.cause: Cause = cause
        super().__init__(message)


class TransportError(BackendError):
    """Network, rate limit or server failure that outlived its retries."""

    def __init__(self, message: str, attempts: int = 0, reason: Reason = "other") -> None:
        """Keep the number of attempts that were made, and under what the failure is counted."""
        self.attempts = attempts
        self.reason = reason
        super().__init__(message)


class BudgetExceeded(BackendError):
    """The run's budget of dollars or tokens is spent, or it was told to stop; it can be resumed."""

    reason = "stopped"
