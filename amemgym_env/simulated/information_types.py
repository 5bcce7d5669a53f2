"""Effect of a memory prompt's list of information types on the simulated model's extraction.

Three rates depend on the words of the list alone. A type that names a variable lowers the misses
of its values. A list without the general types misses what it does not name. A longer list raises
all misses. The general list `INFORMATION_TYPES`, or no list, changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from amemgym_env.memory.embedding import terms
from amemgym_env.prompts.memory import INFORMATION_TYPES

HEADING = "Look for:"
"""The line above the list in a memory prompt."""


@dataclass(frozen=True, slots=True)
class InformationTypeEffect:
    """Rates by which a list of information types changes extraction misses.

    Assumed, not measured on real models. `focus` was fitted on one figure, the fall of write
    failures from the paper's complete feedback, and stopped at its bound: see docs/search.md.
    """

    focus: float = 1.0
    """Share of a value's misses that naming its variable in full avoids; proportional in part."""
    narrowness: float = 0.5
    """Probability of missing what no type names when all general types are absent."""
    crowding: float = 0.001
    """Probability of missing any value, per type beyond the length of the general list."""

    def miss(self, base: float, variable: str, listed: tuple[str, ...] | None) -> float:
        """Return the probability of missing a value of `variable`; `base` without a list."""
        if listed is None or listed == INFORMATION_TYPES:
            return base
        share = named(variable, listed)
        general = sum(kept in listed for kept in INFORMATION_TYPES) / len(INFORMATION_TYPES)
        longer = max(0, len(listed) - len(INFORMATION_TYPES))
        noted = 1.0 - base * (1.0 - self.focus * share)
        noted *= 1.0 - self.narrowness * (1.0 - general) * (1.0 - share)
        return 1.0 - noted * (1.0 - self.crowding) ** longer


@lru_cache(maxsize=4096)
def listed_types(content: str) -> tuple[str, ...] | None:
    """Return the list that a memory prompt's text holds; None when it holds none."""
    _, found, rest = content.partition(f"\n{HEADING}\n")
    if not found:
        return None
    lines = []
    for line in rest.split("\n"):
        if not line.startswith("- "):
            break
        lines.append(line[2:].strip())
    return tuple(lines)


@lru_cache(maxsize=65536)
def named(variable: str, listed: tuple[str, ...]) -> float:
    """Return the largest share of a variable's word stems that one special type contains."""
    wanted = _stems(re.sub(r"[_\W]+", " ", variable))
    if not wanted:
        return 0.0
    special = (kind for kind in listed if kind not in INFORMATION_TYPES)
    return max((len(wanted & _stems(kind)) / len(wanted) for kind in special), default=0.0)


@lru_cache(maxsize=16384)
def _stems(text: str) -> frozenset[str]:
    return frozenset(terms(text))
