"""Published figures for the fit and its held-out comparison; numbers only.

AMemGym (ICLR 2026), gpt-4.1-mini on v1.base: failure rates from its diagnosis, memory scores from
its main and reuse-bias tables.
"""

from __future__ import annotations

from typing import NamedTuple


class Rates(NamedTuple):
    """Failure rates over all questions and periods, each in [0, 1]."""

    write: float
    read: float
    utilization: float


FAILURE_RATES: dict[str, Rates] = {
    "native": Rates(0.301, 0.087, 0.244),
    "rag-2-4-30": Rates(0.377, 0.172, 0.067),
    "awe-2-4-30": Rates(0.338, 0.159, 0.074),
    "awi-2-4": Rates(0.286, 0.245, 0.122),
}
"""The one table that the profile `calibrated` is fitted on."""

ON_POLICY: dict[str, float] = {
    "awe-2-4-30": 0.291,
    "awe-2-8-30": 0.278,
    "awe-2-4-10": 0.275,
    "awe-4-4-30": 0.262,
    "awe-2-0-30": 0.261,
    "awe-2-4-50": 0.251,
    "awe-8-4-30": 0.233,
    "rag-2-4-30": 0.227,
    "native": 0.203,
    "awi-2-4": 0.172,
}
"""Memory scores on-policy."""

OFF_POLICY: dict[str, float] = {
    "awe-2-4-30": 0.253,
    "awe-2-8-30": 0.271,
    "awe-2-4-10": 0.273,
    "awe-4-4-30": 0.229,
    "awe-2-0-30": 0.262,
    "awe-2-4-50": 0.248,
    "awe-8-4-30": 0.221,
    "rag-2-4-30": 0.241,
    "native": 0.198,
    "awi-2-4": 0.199,
}
"""Memory scores over the dialogues of another assistant."""

CONTRASTS: tuple[tuple[str, str, str], ...] = (
    ("topk 30 over 10", "awe-2-4-30", "awe-2-4-10"),
    ("topk 30 over 50", "awe-2-4-30", "awe-2-4-50"),
    ("freq 2 over 4", "awe-2-4-30", "awe-4-4-30"),
    ("freq 4 over 8", "awe-4-4-30", "awe-8-4-30"),
    ("ns 4 over 0", "awe-2-4-30", "awe-2-0-30"),
    ("ns 4 over 8", "awe-2-4-30", "awe-2-8-30"),
)
"""(what, better, worse) within AWE, as the paper's memory scores order them."""

UPPER_BOUND_LEAST = 0.8
"""Every model's upper bound is above this."""
EXTRA_NATIVE = 0.104
"""Memory score of gpt-4.1-mini as native assistant on `extra`."""
