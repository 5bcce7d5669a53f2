"""`AMemGymMemory-v0` and `AMemGymSlots-v0`: memory management as a problem of numbers.

The same `Episode` as `AMemGym-v0`, without text in or out: the message of each round is written
as it is shown, or not. An entry's turn is the number of the round that wrote it, so it also says
where the entry's rows stand in the tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from amemgym_env.agent import Operation, Phase
from amemgym_env.envs.memory.expected_reward import Expectation
from amemgym_env.envs.memory.settings import NumberSettings
from amemgym_env.envs.memory.tables import shown_texts
from amemgym_env.episode import Action, Episode
from amemgym_env.errors import ActionError, ConfigError, EpisodeOver
from amemgym_env.memory.bank import Bank
from amemgym_env.policies.actions import (
    legal_macros,
    legal_slots,
    macro_operations,
    slot_operations,
)
from amemgym_env.policies.features import (
    Floats,
    Sight,
    memory_observation,
    nearest_entry,
    slots_observation,
)
from amemgym_env.policies.wording import LIMIT

Info = dict[str, Any]
_EXAM = Action()


class NumberEnv(gym.Env[Floats, np.int64], ABC):
    """What both number environments share: everything but the actions and the observation.

    Info: at `reset` scenario (id) and seed (of the script); at a step that ends a period accuracy
    (expected, in [0, 1]), and in the last step accuracies (of all exams).
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        self.settings = NumberSettings.of(scenarios, **settings, keep_scripts=True)
        self.pool = self.settings.pool
        self.features = self.pool.features
        self.render_mode = None
        self._seed: int | None = None
        self._number = -1
        self._row = -1
        self._actions = 0
        self._episode: Episode | None = None
        self._ended = True
        self._steps = 0
        self.pool.join(self)

    @property
    def episode(self) -> Episode:
        """The episode as it stands.

        Raises:
            EpisodeOver: before the first `reset()`.
        """
        if self._episode is None:
            raise EpisodeOver("no episode has begun; call reset() first")
        return self._episode

    def rows_in_use(self) -> Iterable[int]:
        """Return the pool's row of the episode under way."""
        return () if self._row < 0 else (self._row,)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, Info]:
        """Begin the next episode; `seed` begins a new series of episodes.

        `options={"scenario": id}` names the scenario. Episode n plays a script of the pool that
        depends on the seed and n alone.

        Raises:
            ConfigError: an unknown option or scenario.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._number = int(seed), -1
        elif self._seed is None:
            self._seed = int(self.np_random.integers(2**63))
        self._number += 1
        self._begin(self._drawn(self._seed, options or {}))
        self._episode = Episode.start(
            self.pool.script(self._row), Bank(capacity=self.settings.capacity)
        )
        self._to_next_round()
        self._accuracies: list[float] = []
        self._steps, self._ended = 0, False
        return self._observe(), self._reset_info()

    def _drawn(self, seed: int, options: Mapping[str, Any]) -> int:
        unknown = [name for name in options if name != "scenario"]
        if unknown:
            raise ConfigError(f"options: expected 'scenario' alone, found {unknown[0]!r}")
        if "scenario" in options:
            rows = self.pool.rows_of(options["scenario"])
            return rows[self._number % len(rows)]
        return self.pool.draw(seed, self._number)

    def _begin(self, row: int) -> None:
        self._row = row
        script = self.pool.script(row)
        tables = self.pool.tables(row)
        self._shown = shown_texts(script)
        self._texts = tables.rows
        self._similarity = tables.similarity
        self._known = tables.known.tolist()
        self._questions = tables.nearest_question.tolist()
        self._expectation = Expectation(tables, self.settings.top_k, self.settings.confusion)
        self._embedding = tables.embedding

    def _reset_info(self) -> Info:
        script = self.episode.script
        return {"scenario": script.scenario.id, "seed": script.seed}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, Info]:
        """Write the present message, or not, and go on to the next.

        Raises:
            ActionError: no integer, or one outside the action space.
            EpisodeOver: the episode has ended, or none has begun.
        """
        episode = self._episode
        if episode is None or self._ended:
            raise EpisodeOver("the episode is over; call reset() to begin another")
        operations = self._operations(self._checked(action), episode)
        self._episode = episode.advance(Action("", operations)).episode
        self._steps += 1
        accuracies = self._to_next_round()
        reward = 0.0
        terminated = self._episode.over
        info: Info = {}
        if accuracies:
            self._accuracies += accuracies
            info["accuracy"] = sum(accuracies) / len(accuracies)
            if self.settings.reward == "period":
                reward = sum(accuracies)
            elif terminated:
                reward = sum(self._accuracies) / len(self._accuracies)
        limit = self.settings.max_steps
        truncated = not terminated and limit is not None and self._steps >= limit
        self._ended = terminated or truncated
        return self._observe(), reward, terminated, truncated, info

    def _to_next_round(self) -> list[float]:
        """Hold the exams that come next; return their expected accuracies."""
        episode = self.episode
        places, position = episode.places, episode.position
        if position >= len(places) or places[position].phase is not Phase.EXAM:
            return []
        accuracies: list[float] = []
        entries = [entry.turn + 1 for entry in episode.bank.entries]
        while not episode.over and episode.place.phase is Phase.EXAM:
            accuracies.append(self._expectation.accuracy(entries, episode.place.period))
            episode = episode.advance(_EXAM).episode
        self._episode = episode
        return accuracies

    def _checked(self, action: Any) -> int:
        size = self._actions
        if type(action) is not int:
            if isinstance(action, bool) or not (
                isinstance(action, int | np.integer)
                or (
                    isinstance(action, np.ndarray)
                    and action.shape in ((), (1,))
                    and np.issubdtype(action.dtype, np.integer)
                )
            ):
                raise ActionError(
                    f"action: expected an integer in 0..{size - 1}, found {action!r:.80}"
                )
            action = int(action) if not isinstance(action, np.ndarray) else int(action.item())
        if not 0 <= action < size:
            raise ActionError(f"action: expected an integer in 0..{size - 1}, found {action!r}")
        return int(action)

    def _sight(self, episode: Episode) -> Sight:
        turn = episode.turn
        turns = [entry.turn for entry in episode.bank.entries]
        numbers = [written + 1 for written in turns]
        row = self._similarity[turn + 1].tolist()
        questions = self._questions
        return Sight(
            self._texts[turn + 1],
            self._texts,
            numbers,
            [row[number] for number in numbers],
            turns,
            turn,
            self.settings.capacity,
            self._known[turn + 1],
            questions[turn + 1],
            [questions[number] for number in numbers],
        )

    def get_state(self) -> dict[str, Any]:
        """Return a JSON snapshot of the episode with its memory, and of the series of episodes."""
        episode = self.episode
        return {
            "scenario": episode.script.scenario.id,
            "script_seed": episode.script.seed,
            "episode": episode.to_json(),
            "accuracies": list(self._accuracies),
            "steps": self._steps,
            "ended": self._ended,
            "seed": self._seed,
            "number": self._number,
            "generator": self.np_random.bit_generator.state,
        }

    def set_state(self, state: Mapping[str, Any]) -> tuple[Floats, Info]:
        """Continue from a snapshot of an environment with the same pool and settings.

        Raises:
            ConfigError: the snapshot is of another kind, or its script is not in the pool.
        """
        try:
            rows = self.pool.rows_of(state["scenario"])
            row = next(
                (row for row in rows if self.pool.script(row).seed == state["script_seed"]), None
            )
            if row is None:
                raise ConfigError(
                    f"snapshot: expected a script of the pool, found scenario "
                    f"{state['scenario']!r} with script seed {state['script_seed']!r}"
                )
            episode = Episode.restore(self.pool.script(row), state["episode"])
            accuracies, steps = list(state["accuracies"]), int(state["steps"])
            ended, seed, number = bool(state["ended"]), state["seed"], state["number"]
            self.np_random.bit_generator.state = state["generator"]
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"snapshot: expected what get_state() returned, found {error!r} wrong in it"
            ) from error
        self._begin(row)
        self._episode, self._accuracies, self._steps = episode, accuracies, steps
        self._ended, self._seed, self._number = ended, seed, number
        return self._observe(), self._reset_info()

    @abstractmethod
    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions do something now, shape (actions,); action 0 is always legal."""

    @abstractmethod
    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        """Return what an action writes in the present round."""

    @abstractmethod
    def _observe(self) -> Floats:
        """Return the observation of the present round."""


class AMemGymMemoryEnv(NumberEnv):
    """The user's message is a candidate: leave, add, update the nearest entry, or delete it.

    Arguments: see `number_settings.py`. Actions: see `operations.py`. Observation: a float32 Box,
    shape (features,), columns `feature_names`; all 0 after the end. Reward: the expected accuracy
    of the exam in the last round of each period, in [0, 1], else 0.
    """

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        super().__init__(scenarios, **settings)
        self.feature_names = self.features.feature_names
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (len(self.feature_names),), np.float32)
        self._actions = 4
        self.action_space = spaces.Discrete(self._actions)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which of the four actions do something now, shape (4,)."""
        return np.array(legal_macros(len(self.episode.bank.entries)))

    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        entries = episode.bank.entries
        near = 0
        if action >= 2 and entries:
            row = self._similarity[episode.turn + 1].tolist()
            near = nearest_entry([row[entry.turn + 1] for entry in entries])
        return macro_operations(
            action, self._shown[episode.turn], entries, self.settings.capacity, near
        )

    def _observe(self) -> Floats:
        episode = self.episode
        if episode.over:
            return np.zeros(len(self.feature_names), np.float32)
        observation = memory_observation(self.features, self._sight(episode))
        if self._embedding is not None:
            vector = self._embedding[episode.turn + 1] / np.float32(127)
            observation = np.concatenate([observation, vector])
        return observation


class AMemGymSlotsEnv(NumberEnv):
    """The action also chooses which entry to overwrite, give up or delete.

    Arguments: see `number_settings.py`. Actions: see `operations.py`. Observation: a float32 Box,
    shape (1 + capacity, columns): the message (`message_names`), then the entries in the bank's
    order (`slot_names`), rows of 0 for empty places. Reward as in `AMemGymMemory-v0`.
    """

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        super().__init__(scenarios, **settings)
        self.message_names = self.features.message_names
        self.slot_names = self.features.slot_names
        capacity = self.settings.capacity
        self.observation_space = spaces.Box(
            -LIMIT, LIMIT, (1 + capacity, len(self.slot_names)), np.float32
        )
        self._actions = 2 + 2 * capacity
        self.action_space = spaces.Discrete(self._actions)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions do something now, shape (2 + 2 * capacity,)."""
        return np.array(legal_slots(len(self.episode.bank.entries), self.settings.capacity))

    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        message = self._shown[episode.turn]
        return slot_operations(action, message, episode.bank.entries, self.settings.capacity)

    def _observe(self) -> Floats:
        episode = self.episode
        if episode.over:
            shape = (1 + self.settings.capacity, len(self.slot_names))
            return np.zeros(shape, np.float32)
        numbers = [entry.turn + 1 for entry in episode.bank.entries]
        between = self._similarity[np.ix_(numbers, numbers)]
        return slots_observation(self.features, self._sight(episode), between)
