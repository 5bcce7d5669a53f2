"""Native vector environments of `AMemGymMemory-v0` and `AMemGymSlots-v0`.

All episodes advance in a few array operations. The result equals, to the bit, a stack of the scalar
environments of `env.py`, episode after episode.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from amemgym_env.envs.memory.batch_observations import memory_observations, slots_observations
from amemgym_env.envs.memory.batch_state import NOWHERE, ArrayEpisodes, Bools, Ints, Slots
from amemgym_env.envs.memory.vector_base import BaseMemoryVectorEnv, Floats
from amemgym_env.policies.actions import MemoryAction, slot_action_count
from amemgym_env.policies.wording import LIMIT

# Arrays without axes, which numpy compares faster than plain numbers, let alone an enum.
_ADD, _UPDATE, _DELETE = (
    np.array(int(m)) for m in (MemoryAction.ADD, MemoryAction.UPDATE, MemoryAction.DELETE)
)
_NOWHERE = np.array(NOWHERE, np.int32)


class AMemGymMemoryVectorEnv(BaseMemoryVectorEnv):
    """N episodes of `AMemGymMemory-v0`; observation (N, features), actions (N,) of 0..3."""

    def action_masks(self) -> Bools:
        """Return which of the four actions are legal now, shape (N, 4)."""
        masks = np.ones((self.num_envs, len(MemoryAction)), np.bool_)
        masks[:, 2:] = (self.episodes.count > 0)[:, None]
        return masks

    def _action_space(self) -> spaces.Discrete:
        return spaces.Discrete(len(MemoryAction))

    def _observation_space(self) -> spaces.Box:
        self.feature_names = self.features.feature_names
        return spaces.Box(-LIMIT, LIMIT, (len(self.feature_names),), np.float32)

    def apply(self, actions: Ints) -> Bools | None:
        """Apply one action per episode; see `BaseMemoryVectorEnv.apply`."""
        episodes = self.episodes
        masked: Bools | None = None
        if np.count_nonzero(episodes.count) < self.num_envs:  # some bank is empty
            masked = (actions >= _UPDATE) & (episodes.count == 0)
        near = episodes.ranking().near_position
        adding = actions == _ADD
        overwrite = np.where(actions == _UPDATE, near, _NOWHERE)
        remove = np.where(actions == _DELETE, near, _NOWHERE)
        _refresh(episodes, adding, overwrite)
        if len(episodes.slots) == self.settings.capacity:  # else a bank is never full
            evicting = (adding & (episodes.count == self.settings.capacity)).nonzero()[0]
            if evicting.size:
                remove[evicting] = episodes.oldest(evicting)
        episodes.step(remove, overwrite, adding)
        return masked

    def _observe(self, over: Bools | None = None) -> Floats:
        return memory_observations(self.episodes, over)


class AMemGymSlotsVectorEnv(BaseMemoryVectorEnv):
    """N episodes of `AMemGymSlots-v0`; observation (N, 1 + capacity, columns)."""

    def action_masks(self) -> Bools:
        """Return which actions are legal now, shape (N, 2 + 2 * capacity)."""
        capacity = self.settings.capacity
        masks = np.ones((self.num_envs, slot_action_count(capacity)), np.bool_)
        masks[:, 1] = self.episodes.count < capacity
        held = np.arange(capacity) < self.episodes.count[:, None]
        masks[:, 2 : 2 + capacity] = held
        masks[:, 2 + capacity :] = held
        return masks

    def _action_space(self) -> spaces.Discrete:
        return spaces.Discrete(slot_action_count(self.settings.capacity))

    def _observation_space(self) -> spaces.Box:
        self.message_names = self.features.message_names
        self.slot_names = self.features.slot_names
        shape = (1 + self.settings.capacity, len(self.slot_names))
        return spaces.Box(-LIMIT, LIMIT, shape, np.float32)

    def apply(self, actions: Ints) -> Bools | None:
        """Apply one action per episode; see `BaseMemoryVectorEnv.apply`."""
        episodes = self.episodes
        capacity = self.settings.capacity
        deletes, position = np.divmod(actions - 2, capacity)
        legal = (actions >= 2) & (position < episodes.count)
        adding = (actions == 1) & (episodes.count < capacity)
        position = position.astype(np.int32)
        overwrite = np.where(legal & (deletes == 0), position, _NOWHERE)
        remove = np.where(legal & (deletes == 1), position, _NOWHERE)
        masked: Bools = (actions != 0) & ~legal & ~adding
        _refresh(episodes, adding, overwrite)
        episodes.step(remove, overwrite, adding)
        return masked

    def _observe(self, over: Bools | None = None) -> Floats:
        return slots_observations(self.episodes, over)


def _refresh(episodes: ArrayEpisodes, adding: Bools, overwrite: Slots) -> None:
    """Refresh a message that the bank already holds, instead of adding it."""
    standing = episodes.duplicates(adding)
    if standing is not None:
        refreshing = standing >= 0
        np.copyto(overwrite, standing, where=refreshing)
        adding &= ~refreshing
