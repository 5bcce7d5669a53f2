"""The scalar number environment: the rule, its equality with the text environment, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from amemgym_env.agent import Entry, Op, Phase
from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.envs.memory.text_wrapper import MemoryOperations
from amemgym_env.envs.text.actions import answers, say
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import ActionError, ConfigError, EpisodeOver
from amemgym_env.policies.actions import MemoryAction, legal_memory_actions, memory_operations
from amemgym_env.scenarios.answer_model import AnswerModelParameters, choice_probabilities
from tests.envs.memory.cases import PAIRS, few, pool, scalar

IDS = ("AMemGymMemory-v0", "AMemGymSlots-v0")


def entry(number: int, turn: int, text: str = "") -> Entry:
    return Entry(str(number), text or f"text {number}", "", "", turn)


def test_macros_are_operations_on_the_nearest_and_the_oldest_entry() -> None:
    bank = (entry(1, 9), entry(2, 3), entry(3, 5))

    def played(action: int, capacity: int = 4, message: str = "new") -> list[tuple[Any, ...]]:
        found = memory_operations(action, message, bank, capacity, nearest=2)
        return [tuple(operation) for operation in found]

    assert played(MemoryAction.NOOP) == []
    assert played(MemoryAction.ADD) == [(Op.ADD, None, "new")]
    assert played(MemoryAction.ADD, capacity=3) == [(Op.DELETE, "2", None), (Op.ADD, None, "new")]
    assert played(MemoryAction.ADD, capacity=3, message="text 1") == [(Op.ADD, None, "text 1")]
    assert played(MemoryAction.UPDATE) == [(Op.UPDATE, "3", "new")]
    assert played(MemoryAction.DELETE) == [(Op.DELETE, "3", None)]
    assert memory_operations(MemoryAction.UPDATE, "new", (), 4, 0) == ()
    assert memory_operations(MemoryAction.DELETE, "new", (), 4, 0) == ()
    assert legal_memory_actions(0) == (True, True, False, False)
    assert legal_memory_actions(1) == (True, True, True, True)


@pytest.mark.parametrize("wrapped", [False, True], ids=["by hand", "MemoryOperations"])
@pytest.mark.parametrize("difficulty", ["default", "hard"])
def test_the_text_environment_holds_the_same_bank_and_pays_the_same(
    wrapped: bool, difficulty: str
) -> None:
    # Second of the three equalities of the design: operations played with ns = 0 and the shown
    # message as the entry's text. With the wrapper, observations are equal too (the third).
    numbers = scalar("memory", scenarios=pool(difficulty), difficulty=difficulty)
    text = AMemGymEnv(few(), difficulty=difficulty)
    outer = MemoryOperations(text) if wrapped else None
    generator = np.random.default_rng(3)
    for _ in range(2):
        seen, info = numbers.reset(seed=int(generator.integers(100)))
        start = {"seed": info["seed"], "options": {"scenario": info["scenario"]}}
        same, _ = outer.reset(**start) if outer else text.reset(**start)
        over = False
        while not over:
            action = int(generator.integers(4))
            if outer:
                assert np.array_equal(seen, same)
                assert np.array_equal(numbers.action_masks(), outer.action_masks())
                same, paid, over, _, _ = outer.step(action)
            else:
                turn = text.turn()
                near = text.view.search(turn.shown, 1)
                entries = text.view.entries()
                place = entries.index(near[0]) if near else 0
                operations = memory_operations(action, turn.shown, entries, 12, place)
                same, _, over, _, _ = text.step(say("", *operations))
                paid = 0.0
                if same["phase"] == Phase.EXAM and not over:
                    paid = expected(text)
                    same, _, over, _, _ = text.step(answers([]))
            seen, reward, ended, _, _ = numbers.step(action)
            assert ended == over
            assert abs(reward - paid) <= 1e-12
            assert numbers.episode.bank == text.episode.bank
        if outer:
            assert np.array_equal(seen, same)


def expected(text: AMemGymEnv) -> float:
    """Return the mean probability that the reader gives to the right choices of the exam."""
    script, exam = text.episode.script, text.exam()
    total = 0.0
    for number, question in enumerate(exam.questions):
        said = sorted(question.memory, key=lambda item: item.turn)
        exposures = [script.utterances[item.turn].exposures for item in said]
        chances = choice_probabilities(
            exposures,
            script.scenario.qas[number],
            AnswerModelParameters(script.difficulty.confusion),
        )
        total += chances[script.scenario.right_choices[exam.period][number]]
    return total / len(exam.questions)


def test_an_episode_without_distractors_that_writes_all_openers_is_nearly_perfect() -> None:
    env = scalar("memory", scenarios=pool("easy"), difficulty="easy", capacity=200, top_k="all")
    env.reset(seed=0)
    paid, over = [], False
    while not over:
        _, reward, over, _, info = env.step(MemoryAction.ADD)
        if "accuracy" in info:
            paid.append(reward)
    assert len(paid) == len(env.episode.script.periods)
    assert min(paid) > 0.9


@pytest.mark.parametrize("name", IDS)
def test_check_env_is_silent_b06_11(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, scenarios=pool()).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("capacity", [1, 12, 300])
def test_observations_are_finite_float32_of_the_declared_shape_b06_11(
    name: str, capacity: int
) -> None:
    env = gym.make(name, scenarios=pool(), capacity=capacity)
    seen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    over = False
    while not over:
        assert seen.dtype == np.float32
        assert seen.shape == env.observation_space.shape
        assert np.isfinite(seen).all()
        assert env.observation_space.contains(seen)
        seen, reward, over, _, _ = env.step(env.action_space.sample())
        assert type(reward) is float
    assert not seen.any()


@pytest.mark.parametrize("kind", PAIRS)
def test_the_end_terminates_and_a_limit_truncates_b06_08(kind: str) -> None:
    env = scalar(kind)
    env.reset(seed=0)
    rounds = len(env.episode.script.utterances)
    flags = [env.step(0)[2:4] for _ in range(rounds)]
    assert flags[:-1] == [(False, False)] * (rounds - 1)
    assert flags[-1] == (True, False)
    for limit, last in ((rounds, (True, False)), (rounds - 1, (False, True))):
        limited = scalar(kind, max_steps=limit)
        limited.reset(seed=0)
        assert [limited.step(0)[2:4] for _ in range(limit)][-1] == last
        with pytest.raises(EpisodeOver, match="reset"):
            limited.step(0)


def test_an_episode_that_is_cut_keeps_what_it_earned_b06_15() -> None:
    env = scalar("memory", max_steps=60)
    env.reset(seed=0)
    exams = [
        info["accuracy"] for *_, info in (env.step(1) for _ in range(60)) if "accuracy" in info
    ]
    assert exams
    assert all(0.0 < accuracy < 1.0 for accuracy in exams)


@pytest.mark.parametrize("kind", PAIRS)
def test_masks_are_fresh_and_a_masked_action_does_nothing_b06_13(kind: str) -> None:
    env = scalar(kind)
    env.reset(seed=0)
    for action in range(int(env.action_space.n)):  # type: ignore[attr-defined]
        env.reset(seed=0)
        mask = env.action_masks()
        assert mask.shape == (env.action_space.n,)  # type: ignore[attr-defined]
        assert mask[0]
        env.step(action)
        assert len(env.episode.bank.entries) == int(action == 1)
        if action == 1:
            assert env.action_masks().sum() > mask.sum()


@pytest.mark.parametrize("name", IDS)
def test_an_environment_and_its_factory_pickle_b06_09_b06_10(name: str) -> None:
    env = gym.make(f"amemgym_env:{name}", scenarios=pool())
    seen, _ = env.reset(seed=4)
    for _ in range(9):
        seen, *_ = env.step(1)
    copy = cloudpickle.loads(cloudpickle.dumps(env))
    factory = cloudpickle.loads(cloudpickle.dumps(lambda: gym.make(name, scenarios=pool())))
    other = factory()
    first, _ = other.reset(seed=4)
    assert first.shape == seen.shape
    assert np.array_equal(copy.step(0)[0], env.step(0)[0])


@pytest.mark.parametrize("kind", PAIRS)
def test_a_snapshot_is_json_and_goes_on_the_same(kind: str) -> None:
    env, other = scalar(kind), scalar(kind)
    env.reset(seed=8)
    generator = np.random.default_rng(0)
    for _ in range(37):
        env.step(int(generator.integers(4)))
    state = json.loads(json.dumps(env.get_state()))
    other.set_state(state)
    for _ in range(90):
        action = int(generator.integers(4))
        one, two = env.step(action), other.step(action)
        assert np.array_equal(one[0], two[0])
        assert one[1:] == two[1:]
        if one[2]:
            assert np.array_equal(env.reset()[0], other.reset()[0])
    with pytest.raises(ConfigError, match="snapshot"):
        other.set_state({"scenario": state["scenario"]})
    with pytest.raises(ConfigError, match="script seed 77"):
        other.set_state({**state, "script_seed": 77})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"capacity": 0}, "capacity: expected an integer of at least 1"),
        ({"capacity": 2.5}, "capacity"),
        ({"difficulty": "none"}, "capacity: expected an integer"),
        ({"top_k": 0}, "top_k: expected an integer of at least 1"),
        ({"top_k": "some"}, "top_k"),
        ({"confusion": 1.5}, r"confusion: expected a number in \[0, 1\]"),
        ({"confusion": "high"}, "confusion"),
        ({"reward": "daily"}, "reward"),
        ({"max_steps": 0}, "max_steps"),
        ({"pool_size": 0}, "pool_size"),
        ({"limit": 0}, "limit"),
        ({"rounds_update": 0}, "rounds_update"),
        ({"difficulty": "silly"}, "difficulty"),
        ({"scenarios": "trian"}, "did you mean train"),
        ({"scenarios": []}, "at least one scenario"),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("kind", PAIRS)
def test_a_wrong_setting_is_one_clear_error(
    kind: str, settings: dict[str, Any], message: str
) -> None:
    settings = {"scenarios": list(few()), **settings}
    for make in PAIRS[kind]:
        with pytest.raises(ConfigError, match=message):
            make(**settings)


@pytest.mark.parametrize("action", [4, -1, 1.0, "1", None, True, np.array([1, 2])], ids=repr)
def test_a_wrong_action_is_one_clear_error(action: Any) -> None:
    env = scalar("memory")
    with pytest.raises(EpisodeOver, match="reset"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"0\.\.3"):
        env.step(action)
    assert env.episode.turn == 0


def test_an_unknown_scenario_or_option_is_one_clear_error() -> None:
    env = scalar("memory")
    with pytest.raises(ConfigError, match="scenario"):
        env.reset(options={"scenario": "nobody"})
    with pytest.raises(ConfigError, match="options"):
        env.reset(options={"scenery": "x"})


def test_the_wrapper_refuses_what_it_cannot_wrap() -> None:
    with pytest.raises(ConfigError, match="unbounded"):
        MemoryOperations(AMemGymEnv(few()))
    with pytest.raises(ConfigError, match="AMemGym-v0"):
        MemoryOperations(gym.make("CartPole-v1"))


def test_a_period_without_sessions_is_paid_with_the_round_before(tiny_items: Any) -> None:
    from amemgym_env.scenarios.files import parse

    item = tiny_items[0]
    item["periods"][-1]["sessions"] = []
    shared = Pool(Scripts(parse([item]), "easy"), 1, keep_scripts=True)
    for kind, (single, many) in PAIRS.items():
        env, batch = single(shared, difficulty="easy"), many(2, shared, difficulty="easy")
        env.reset(seed=0)
        batch.reset(seed=0)
        over, total = False, 0.0
        while not over:
            _, reward, over, _, _ = env.step(1)
            _, rewards, ended, _, _ = batch.step(np.array([1, 1]))
            assert rewards.tolist() == [reward, reward], kind
            assert ended.tolist() == [over, over]
            total += reward
        assert total > 0


@pytest.mark.slow
def test_the_same_in_any_process() -> None:
    program = """
import hashlib, numpy as np
from amemgym_env.generation.sets import scenarios
from amemgym_env.envs.memory.vector_env import AMemGymMemoryVectorEnv, AMemGymSlotsVectorEnv
for make in (AMemGymMemoryVectorEnv, AMemGymSlotsVectorEnv):
    env = make(3, list(scenarios("train", 2)), pool_size=2)
    seen = [env.reset(seed=1)[0]]
    for step in range(130):
        observation, reward, *_ = env.step(np.full(3, step % 4))
        seen += [observation, reward]
    print(hashlib.sha256(b"".join(item.tobytes() for item in seen)).hexdigest())
"""
    root = Path(__file__).parents[3]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
