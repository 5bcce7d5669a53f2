"""Wrapper with the actions and observations of `AMemGymMemory-v0` over the text environment.

    MemoryOperations(gym.make("AMemGym-v0", difficulty="default"))

The rules are those of `AMemGymMemory-v0`: actions from `policies/actions.py`, observations from
`features.TextFeatures`, rewards from `answer_model.choice_probabilities` over the entries that the
text environment retrieves. It is slow; train on `AMemGymMemory-v0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from amemgym_env.agent import Entry, Phase, shown_message
from amemgym_env.envs.rewards import ExpectedRewards
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.policies.actions import (
    MemoryAction,
    checked_action,
    legal_memory_actions,
    memory_operations,
)
from amemgym_env.policies.features import FeatureSet, Floats, TextFeatures
from amemgym_env.policies.wording import LIMIT
from amemgym_env.scenarios.answer_model import AnswerModelParameters, choice_probabilities

Info = dict[str, Any]


class MemoryOperations(gym.Wrapper[Any, Any, Any, Any]):
    """The text environment as rounds with four memory actions.

    Replies are empty. Exams are answered by the most probable choices of the answer model, probes
    are not answered. Reward: the expected accuracy in the last round of each period, or with
    `reward="terminal"` of the text environment the mean over all exams in the last step. Info as in
    `AMemGymMemory-v0`, on top of the text environment's.

    Args:
        env: an `AMemGym-v0` with a bounded memory.
        confusion: probability in [0, 1] of reading a stale value; None: the difficulty's.
        profile: add the similarity to the user's profile to the features.
        embedder: must be the text environment's own.

    Raises:
        ConfigError: the environment is another one, or its memory is unbounded.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        confusion: float | None = None,
        profile: bool = False,
        embedder: Embedder = DEFAULT,
    ) -> None:
        super().__init__(env)
        text = env.unwrapped
        if not isinstance(text, AMemGymEnv):
            raise ConfigError(f"env: expected an AMemGym-v0, found {text!r}")
        if text.capacity is None:
            raise ConfigError(
                "capacity: expected a bounded memory, found an unbounded one; make AMemGym-v0 with "
                'capacity=12, or with difficulty="default"'
            )
        self._text: AMemGymEnv = text
        self._capacity = text.capacity
        self._confusion = confusion
        self._embedder = embedder
        self.features = FeatureSet.of(embedder, profile=profile, question_blind=text.question_blind)
        self.feature_names = self.features.feature_names
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (len(self.feature_names),), np.float32)
        self.action_space = spaces.Discrete(len(MemoryAction))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, Info]:
        """Begin the next episode of the text environment, at its first round."""
        observation, info = self.env.reset(seed=seed, options=options)
        script = self._text.episode.script
        self._observer = TextFeatures(
            self.features, self._capacity, self._embedder, script.scenario.profile_text
        )
        self._rewards, self._masked = ExpectedRewards(self._text.reward_mode), 0
        observation, _, _, _, info = self._to_next_round(observation, info)
        return self._features(observation), info

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, Info]:
        """Apply a `MemoryAction` to the current message, and go on to the next round.

        Raises:
            ActionError: not an integer in 0..3.
            EpisodeOver: the episode has ended, or none has begun.
        """
        episode = self._text.episode
        chosen = checked_action(action, len(MemoryAction))
        entries = episode.bank.entries
        near = 0
        if chosen >= MemoryAction.UPDATE and entries:
            near = self._observer.nearest(self._shown(), entries)
        operations = memory_operations(chosen, self._shown(), entries, self._capacity, near)
        observation, _, terminated, truncated, info = self.env.step(say("", *operations))
        observation, held, ended, cut, info = self._to_next_round(observation, info)
        terminated, truncated = terminated or ended, truncated or cut
        info = dict(info)
        if chosen and not operations:
            self._masked += 1
            info["masked"] = True
        reward = self._rewards.pay(held, terminated, info)
        if terminated or truncated:
            info["masked_actions"] = self._masked
        return self._features(observation), reward, terminated, truncated, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which of the four actions are legal now, shape (4,)."""
        return np.array(legal_memory_actions(len(self._text.episode.bank.entries)))

    def _to_next_round(
        self, observation: dict[str, Any], info: Info
    ) -> tuple[dict[str, Any], list[float], bool, bool, Info]:
        """Answer exams and probes up to the next round; return the expected accuracies."""
        terminated, truncated = False, False
        accuracies: list[float] = []
        while not self._text.episode.over and not truncated:
            phase = Phase(observation["phase"])
            if phase is Phase.DIALOGUE:
                break
            if phase is Phase.EXAM:
                accuracy, chosen = self._read(observation["questions"], observation["period"])
                accuracies.append(accuracy)
                action = answers(chosen)
            else:
                action = values(())
            observation, _, terminated, truncated, info = self.env.step(action)
        return observation, accuracies, terminated, truncated, info

    def _read(self, questions: Sequence[Any], period: int) -> tuple[float, list[int]]:
        """Return the expected accuracy of an exam, and the most probable choices as shown."""
        script = self._text.episode.script
        confusion = script.difficulty.confusion if self._confusion is None else self._confusion
        right = script.scenario.right_choices[period]
        total, chosen = 0.0, []
        for number, question in enumerate(questions):
            said = sorted(question.memory, key=lambda entry: entry.turn)
            probabilities = choice_probabilities(
                [self._exposures(entry) for entry in said],
                script.scenario.qas[number],
                AnswerModelParameters(confusion),
            )
            total += float(probabilities[right[number]])
            chosen.append(script.option_orders[number].index(int(probabilities.argmax())))
        return total / len(questions), chosen

    def _exposures(self, entry: Entry) -> tuple[tuple[str, str], ...]:
        # Every entry is a message as shown; its turn is the number of the message.
        return self._text.episode.script.utterances[entry.turn].exposures

    def _shown(self) -> str:
        episode = self._text.episode
        return shown_message(episode.message, episode.time, episode.place.round == 0)

    def _features(self, observation: dict[str, Any]) -> Floats:
        episode = self._text.episode
        if episode.over:
            return np.zeros(len(self.feature_names), np.float32)
        _, period, session, number = episode.place
        return self._observer.memory(
            self._shown(),
            episode.turn,
            (period, session, number),
            episode.bank.entries,
            observation["asked"],
        )
