"""Observations of a batch of episodes: `policies/features.py` in numpy, equal to the bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.batch_state import ArrayEpisodes, Bools
from amemgym_env.envs.memory.pool import NEAREST_ASKED, NEAREST_QUESTION
from amemgym_env.memory.embedding import SCALE
from amemgym_env.policies.features import NEAREST_NAMES, PLACE_NAMES, SLOT_NAMES, UNIT

Floats = npt.NDArray[np.float32]

_PLACES = len(PLACE_NAMES)
_AGES = np.array(16.0)
_KNOWN = -1
"""Column of a text's row that says whether the questions are known in its round."""


def memory_observations(episodes: ArrayEpisodes, over: Bools | None) -> Floats:
    """Return the observations of `AMemGymMemory-v0`, shape (N, features).

    Those of the episodes `over` are 0; None: none is over.
    """
    pool = episodes.pool
    ranking = episodes.ranking()
    number = episodes.num_envs
    by_count = episodes.by_count.take(episodes.count, axis=1)
    held, unit = by_count[2:4]
    values = np.zeros((2, len(NEAREST_NAMES), number))
    np.divide(ranking.similarities, unit, out=values[:, 0])
    np.divide(_totals(episodes) - by_count[4:6], by_count[6:], out=values[1, 3:])
    ages = values[:, 1:5:3]  # (2, 2, N): of the nearest and oldest entry, of none, and the mean
    ages[:, 0] = ranking.entries
    np.subtract((episodes.turn + 1) * held, ages, out=ages)
    ages /= ages + _AGES
    asking = ranking.facts[:, :1, NEAREST_ASKED]
    values[:, 2] = (ranking.facts[:, 1:, NEAREST_QUESTION] == asking).T
    values[0, 3:] = by_count[:2]
    out = episodes.texts.take(ranking.texts, axis=0)  # (N, 3, width)
    out[:, 1:, -_PLACES:] = values.transpose(2, 0, 1)
    out[:, :, pool.features.asked_column] *= out[:, :1, _KNOWN]
    out = out.reshape(number, -1)
    if pool.embedding is not None:
        vectors = pool.embedding.reshape(-1, pool.embedding.shape[2])[episodes.text]
        out = np.concatenate([out, vectors / np.float32(SCALE)], axis=1)
    if over is not None:
        out[over] = 0.0
    return out


def _totals(episodes: ArrayEpisodes) -> npt.NDArray[np.int32]:
    """Return the sums of each bank's similarities to the present message and rounds, (2, N)."""
    # 32 bits are enough for banks below 2**16 entries, and faster.
    sums: npt.NDArray[np.int32] = np.add.reduce(episodes.banks, axis=1, dtype=np.int32)
    return sums


def slots_observations(episodes: ArrayEpisodes, over: Bools | None) -> Floats:
    """Return the observations of `AMemGymSlots-v0`, shape (N, 1 + capacity, columns).

    Those of the episodes `over` are 0; None: none is over.
    """
    capacity = episodes.capacity
    pool = episodes.pool
    ranking = episodes.ranking()
    slots = episodes.slots
    height, number = slots.shape
    fill, full, _, _, empty, _, unit, _ = episodes.by_count.take(episodes.count, axis=1)
    width = pool.rows.shape[2]
    own = width - _PLACES
    out = np.zeros((number, 1 + capacity, own + len(SLOT_NAMES)), np.float32)
    texts = np.empty((number, 1 + height), np.int64)
    texts[:, 0] = episodes.text
    texts[:, 1:] = (slots + episodes.row).T
    out[:, : 1 + height, :width] = episodes.texts.take(texts, axis=0)
    known = out[:, 0, width + _KNOWN] != 0
    out[:, 0, width] = fill
    out[:, 0, width + 1] = full
    out[:, 0, width + 2] = (_totals(episodes)[0] - empty) / unit
    held = slots > 0
    ages = (episodes.turn + 1 - slots) * held
    facts = pool.text_facts.reshape(-1, 4).take(texts, axis=0)
    questions = np.where(known[:, None], facts[:, :, NEAREST_QUESTION], -1).T
    between = pool.similarity.ravel().take(
        (slots + episodes.row)[:, None] * pool.texts + slots[None]
    )  # (slots, slots, N)
    newer = slots[None] > slots[:, None]
    entry, candidate = questions[1:], questions[0]
    superseded = (newer & (entry[None] == entry[:, None])).any(axis=1)
    values = np.zeros((len(SLOT_NAMES), height, number))
    values[0] = held
    values[1] = ranking.similarity * held / UNIT
    values[2] = ages / (ages + 16)
    values[3] = (entry == candidate) & (entry >= 0)
    values[4] = episodes.positions == ranking.near_position
    values[5] = (slots == ranking.entries[1]) & held
    values[6] = np.where(newer, np.maximum(between, 0), 0).max(axis=1, initial=0) / UNIT
    values[7] = superseded & (entry >= 0)
    out[:, 1 : 1 + height, own:] = values.transpose(2, 1, 0)
    unknown = ~known
    if unknown.any():
        out[unknown, :, pool.features.asked_column] = 0.0
    if over is not None:
        out[over] = 0.0
    return out
