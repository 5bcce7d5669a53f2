"""Observations of many episodes at once: `features.py` in numpy, equal to it to the bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from amemgym_env.array_episodes import ArrayEpisodes
from amemgym_env.features import MEMORY_NAMES, PLACE_NAMES, SLOT_NAMES, UNIT
from amemgym_env.tables import NOTHING

Floats = npt.NDArray[np.float32]

_PLACES = len(PLACE_NAMES)


def memory_observations(episodes: ArrayEpisodes) -> Floats:
    """Return the observations of `AMemGymMemory-v0`, shape (N, features); 0 after the end."""
    pool = episodes.pool
    ranking = episodes.ranking()
    columns = pool.rows.shape[2]
    number = episodes.num_envs
    present = episodes.row + episodes.turn + 1
    near, old = ranking.near, ranking.old
    texts = np.empty((number, 3), np.int64)
    texts[:, 0] = present
    texts[:, 1] = episodes.row + near
    texts[:, 2] = episodes.row + old
    end = 3 * columns
    width = end + _PLACES + len(MEMORY_NAMES)
    vector = pool.embedding
    out = np.empty((number, width + (0 if vector is None else vector.shape[2])), np.float32)
    out[:, :end] = pool.rows.reshape(-1, columns).take(texts, axis=0).reshape(number, end)
    out[:, end : end + _PLACES] = pool.place.reshape(-1, _PLACES).take(present, axis=0)
    known = pool.known.ravel().take(present)
    questions = pool.nearest_question.ravel().take(texts)  # (N, 3)
    same = (questions[:, 1:] == questions[:, :1]) & ((questions[:, 0] >= 0) & known)[:, None]
    count = episodes.count
    held = count > 0
    numbers = np.empty((len(MEMORY_NAMES), number))
    ages = (episodes.turn + 1 - near) * held
    numbers[0] = ranking.near_similarity / UNIT
    numbers[1] = ages / (ages + 16)
    numbers[2] = same[:, 0]
    ages = (episodes.turn + 1 - old) * held
    numbers[3] = episodes.at(ranking.similarity, ranking.old_position) * held / UNIT
    numbers[4] = ages / (ages + 16)
    numbers[5] = same[:, 1]
    total = ranking.similarity.sum(axis=0) - NOTHING * (len(episodes.slots) - count)
    numbers[6] = total / (np.maximum(count, 1) * UNIT)
    numbers[7] = count / episodes.capacity
    numbers[8] = count >= episodes.capacity
    numbers[9] = known
    out[:, end + _PLACES : width] = numbers.T
    if not known.all():
        column = episodes.pool.features.asked_column
        out[~known, column] = 0.0
        out[~known, columns + column] = 0.0
        out[~known, 2 * columns + column] = 0.0
    if vector is not None:
        out[:, width:] = vector.reshape(-1, vector.shape[2])[present] / np.float32(127)
    over = episodes.over()
    if over.any():
        out[over] = 0.0
    return out


def slots_observations(episodes: ArrayEpisodes, capacity: int) -> Floats:
    """Return the observations of `AMemGymSlots-v0`, (N, 1 + capacity, columns); 0 after the end."""
    pool = episodes.pool
    ranking = episodes.ranking()
    slots, count = episodes.slots, episodes.count
    height, number = slots.shape
    columns = pool.rows.shape[2]
    out = np.zeros((number, 1 + capacity, columns + len(SLOT_NAMES)), np.float32)
    texts = np.empty((number, 1 + height), np.int64)
    texts[:, 0] = episodes.row + episodes.turn + 1
    texts[:, 1:] = (slots + episodes.row).T
    out[:, : 1 + height, :columns] = pool.rows.reshape(-1, columns).take(texts, axis=0)
    present = texts[:, 0]
    known = pool.known.ravel().take(present)
    out[:, 0, columns : columns + _PLACES] = pool.place.reshape(-1, _PLACES).take(present, axis=0)
    total = ranking.similarity.sum(axis=0) - NOTHING * (height - count)
    out[:, 0, columns + _PLACES] = count / capacity
    out[:, 0, columns + _PLACES + 1] = count >= capacity
    out[:, 0, columns + _PLACES + 2] = total / (np.maximum(count, 1) * UNIT)
    out[:, 0, columns + _PLACES + 3] = known
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
    out[:, 1 : 1 + height, columns:] = values.transpose(2, 1, 0)
    unknown = ~known
    if unknown.any():
        out[unknown, :, pool.features.asked_column] = 0.0
    over = episodes.over()
    if over.any():
        out[over] = 0.0
    return out
