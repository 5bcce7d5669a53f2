"""Observations of many episodes at once: `features.py` in numpy, equal to it to the bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from amemgym_env.array_episodes import ArrayEpisodes
from amemgym_env.features import NEAREST_NAMES, PLACE_NAMES, SLOT_NAMES, UNIT
from amemgym_env.tables import NOTHING

Floats = npt.NDArray[np.float32]

_PLACES = len(PLACE_NAMES)
_AGES = 16
_KNOWN = -1
"""Column of a text's row that says whether the questions are known in its round."""


def memory_observations(episodes: ArrayEpisodes) -> Floats:
    """Return the observations of `AMemGymMemory-v0`, shape (N, features); 0 after the end."""
    pool = episodes.pool
    ranking = episodes.ranking()
    number = episodes.num_envs
    width = pool.rows.shape[2]
    count = episodes.count
    some = np.maximum(count, 1)
    held = count > 0
    texts = np.empty((number, 3), np.int64)
    texts[:, 0] = present = episodes.row + episodes.turn + 1
    texts[:, 1] = episodes.row + ranking.near
    texts[:, 2] = episodes.row + ranking.old
    out = pool.rows.reshape(-1, width).take(texts, axis=0)  # (N, 3, width)
    known = out[:, 0, _KNOWN] != 0
    questions = pool.nearest_question.ravel().take(texts)  # (N, 3)
    candidate = np.where(known, questions[:, 0], -2)
    candidate[candidate < 0] = -2
    same = questions[:, 1:] == candidate[:, None]
    ages = np.empty((3, number))  # of the nearest and the oldest entry, and the mean
    ages[0] = ranking.near
    ages[1] = ranking.old
    ages[2] = episodes.slots.sum(axis=0) / some
    np.subtract(episodes.turn + 1, ages, out=ages)
    ages *= held
    ages /= ages + _AGES
    total = ranking.similarity.sum(axis=0) - NOTHING * (len(episodes.slots) - count)
    values = np.empty((2, len(NEAREST_NAMES), number))
    values[0, 0] = ranking.near_similarity / UNIT
    values[1, 0] = episodes.at(ranking.similarity, ranking.old_position) * held / UNIT
    values[:, 1] = ages[:2]
    values[:, 2] = same.T
    values[0, 3] = count / episodes.capacity
    values[0, 4] = count >= episodes.capacity
    values[1, 3] = total / (some * UNIT)
    values[1, 4] = ages[2]
    out[:, 1:, -_PLACES:] = values.transpose(2, 0, 1)
    out[:, :, pool.features.asked_column] *= known[:, None]
    out[episodes.over()] = 0.0
    out = out.reshape(number, 3 * width)
    if pool.embedding is None:
        return out
    vectors = pool.embedding.reshape(-1, pool.embedding.shape[2])[present] / np.float32(127)
    vectors[episodes.over()] = 0.0
    return np.concatenate([out, vectors], axis=1)


def slots_observations(episodes: ArrayEpisodes, capacity: int) -> Floats:
    """Return the observations of `AMemGymSlots-v0`, (N, 1 + capacity, columns); 0 after the end."""
    pool = episodes.pool
    ranking = episodes.ranking()
    slots, count = episodes.slots, episodes.count
    height, number = slots.shape
    width = pool.rows.shape[2]
    own = width - _PLACES
    out = np.zeros((number, 1 + capacity, own + len(SLOT_NAMES)), np.float32)
    texts = np.empty((number, 1 + height), np.int64)
    texts[:, 0] = episodes.row + episodes.turn + 1
    texts[:, 1:] = (slots + episodes.row).T
    out[:, : 1 + height, :width] = pool.rows.reshape(-1, width).take(texts, axis=0)
    known = out[:, 0, width + _KNOWN] != 0
    total = ranking.similarity.sum(axis=0) - NOTHING * (height - count)
    out[:, 0, width] = count / capacity
    out[:, 0, width + 1] = count >= capacity
    out[:, 0, width + 2] = total / (np.maximum(count, 1) * UNIT)
    held = slots > 0
    ages = (episodes.turn + 1 - slots) * held
    questions = np.where(known[:, None], pool.nearest_question.ravel().take(texts), -1).T
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
    values[4] = (episodes.positions == ranking.near_position) & held
    values[5] = (episodes.positions == ranking.old_position) & held
    values[6] = np.where(newer, np.maximum(between, 0), 0).max(axis=1, initial=0) / UNIT
    values[7] = superseded & (entry >= 0)
    out[:, 1 : 1 + height, own:] = values.transpose(2, 1, 0)
    unknown = ~known
    if unknown.any():
        out[unknown, :, pool.features.asked_column] = 0.0
    over = episodes.over()
    if over.any():
        out[over] = 0.0
    return out
