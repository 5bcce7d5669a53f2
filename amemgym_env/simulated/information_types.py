"""What the simulated model looks for when a memory prompt lists information types.

It reads the list in the prompt's text. Three numbers, keyed to nothing but the list's words:
a type that names a matter lets fewer of its values be missed; a list that has given up the general
types passes over what it does not name; a longer list lets more of everything be missed. The
general list, `INFORMATION_TYPES`, changes nothing, and so does a prompt without a list.
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
class Attention:
    """How much a list of information types changes what is missed.

    Assumed, not measured on real models. `focus` was fitted on one figure, the fall of write
    failures from the paper's complete feedback, and stopped at its bound: see docs/search.md.
    """

    focus: float = 1.0
    """Share of a value's misses that naming its matter in full avoids; in part, in proportion."""
    narrowness: float = 0.5
    """Probability of passing over what no type names, once all general types are given up."""
    crowding: float = 0.001
    """Probability of missing any value, for each type more than the general list has."""

    def miss(self, base: float, matter: str, listed: tuple[str, ...] | None) -> float:
        """Return the probability of missing a value of `matter`, which is `base` without a list."""
        if listed is None or listed == INFORMATION_TYPES:
            return base
        share = named(matter, listed)
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
def named(matter: str, listed: tuple[str, ...]) -> float:
    """Return the largest share of a matter's words (stems) that one special type holds."""
    wanted = _stems(re.sub(r"[_\W]+", " ", matter))
    if not wanted:
        return 0.0
    special = (kind for kind in listed if kind not in INFORMATION_TYPES)
    return max((len(wanted & _stems(kind)) / len(wanted) for kind in special), default=0.0)


@lru_cache(maxsize=16384)
def _stems(text: str) -> frozenset[str]:
    return frozenset(terms(text))
