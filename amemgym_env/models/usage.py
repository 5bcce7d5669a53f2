"""Usage of language models: calls, tokens, seconds and dollars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. Tokens are counts; `usd` is None where the price is not known."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0
    estimated: bool = False
    """Whether some tokens were counted by us, because the provider did not say."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; unknown and estimated parts make it unknown and estimated."""
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.seconds + other.seconds,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.estimated or other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}
