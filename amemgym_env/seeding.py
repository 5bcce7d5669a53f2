"""Keyed random draws without state.

A key is a sequence of strings and integers that names a draw (mechanism, scenario, utterance, ...).
The same key gives the same draw in any process, thread and order, so agents are compared on the
same draws and resumed runs are reproducible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

Key = str | int


def digest(*key: Key) -> bytes:
    """Return 16 bytes that depend on every part of `key` and on nothing else.

    The parts are separated and typed, so ("ab", "c") and ("a", "bc") and (1,) and ("1",) differ.
    """
    return hashlib.blake2b(b"".join(map(_encoded, key)), digest_size=16).digest()


def text_digest(texts: Iterable[str]) -> bytes:
    """Return `digest(*texts)`, faster for many texts."""
    whole = "\x1estr\x1f".join(texts)
    return hashlib.blake2b(
        f"str\x1f{whole}\x1e".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def _encoded(part: Key) -> bytes:
    return f"{type(part).__name__}\x1f{part}\x1e".encode("utf-8", "surrogatepass")


def uniform(*key: Key) -> float:
    """Return a draw in [0, 1) with 53 bits, the same for the same key."""
    return (int.from_bytes(digest(*key)[:8], "big") >> 11) / (1 << 53)


def below(n: int, *key: Key) -> int:
    """Return a draw in 0..n-1 (`n` >= 1), the same for the same key."""
    return min(int(uniform(*key) * n), n - 1)


def generator(*key: Key) -> np.random.Generator:
    """Return a numpy generator seeded by the key: one named stream for one purpose."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest(*key), "big")))


def derived(seed: int, *key: Key) -> int:
    """Return a seed in 0..2**63 - 1 for one purpose of a seed; all are independent."""
    return int.from_bytes(digest("derived", seed, *key)[:8], "big") >> 1


def permutation(n: int, *key: Key) -> tuple[int, ...]:
    """Return a permutation of 0..n-1, the same for the same key."""
    return tuple(sorted(range(n), key=_digests(n, *key).__getitem__))


def uniforms(n: int, *key: Key) -> list[float]:
    """Return `n` draws in [0, 1); the i-th is `uniform(*key, i)`."""
    return [(int.from_bytes(part[:8], "big") >> 11) / (1 << 53) for part in _digests(n, *key)]


def _digests(n: int, *key: Key) -> list[bytes]:
    """Return `digest(*key, i)` for i in 0..n-1, the key hashed once for all."""
    keyed = hashlib.blake2b(b"".join(map(_encoded, key)), digest_size=16)
    digests = []
    for i in range(n):
        hasher = keyed.copy()
        hasher.update(b"int\x1f%d\x1e" % i)
        digests.append(hasher.digest())
    return digests
