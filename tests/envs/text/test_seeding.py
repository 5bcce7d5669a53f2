from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.agent import Operation
from amemgym_env.envs.text.actions import say
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import (
    ConfigError,
    ScenarioError,
)
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.schedule import scenario_index, script_seed
from amemgym_env.scenarios.script import build

ADA = {"scenario": "tiny-ada"}


# ---- seeds, series and snapshots


def test_episode_n_depends_on_seed_and_n_alone(run: Any) -> None:
    one, two = AMemGymEnv("tiny"), AMemGymEnv("tiny")
    first = [one.reset(seed=5 if number == 0 else None)[1] for number in range(7)]
    two.reset(seed=9)
    run(two, lambda env: env.action_space.sample())
    second = [two.reset(seed=5 if number == 0 else None)[1] for number in range(7)]
    keys = [(info["scenario"], info["seed"]) for info in first]
    assert keys == [(info["scenario"], info["seed"]) for info in second]
    assert keys == [
        (one.scenarios[scenario_index(3, 5, number)].id, script_seed(5, number))
        for number in range(7)
    ]
    assert {name for name, _ in keys[:3]} == {name for name, _ in keys[3:6]}
    assert len({seed for _, seed in keys}) == 7
    assert keys[0][1] == 5


def test_without_any_seed_environments_differ() -> None:
    assert len({AMemGymEnv("tiny").reset()[1]["seed"] for _ in range(3)}) == 3


def test_a_ready_script_can_be_played(tiny: list[Scenario]) -> None:
    script = build(tiny[1], seed=99)
    env = AMemGymEnv("tiny")
    _, info = env.reset(seed=0, options={"script": script})
    assert (info["scenario"], info["seed"]) == ("tiny-ben", 99)
    assert env.episode.script is script


@pytest.mark.parametrize(
    "options",
    [{"scenario": "tiny-bem"}, {"user": 3}, {"script": "x"}, {"script": None, "scenario": "x"}],
    ids=str,
)
def test_an_unknown_option_or_scenario_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"tiny-ben|expected 'scenario'|expected a Script"):
        AMemGymEnv("tiny").reset(seed=0, options=options)
    assert options


def test_options_are_not_changed() -> None:
    options = dict(ADA)
    AMemGymEnv("tiny").reset(seed=0, options=options)
    assert options == ADA


@pytest.mark.parametrize("cut", range(9))
def test_a_snapshot_forks_the_episode_with_its_memory(ada: Any, cut: int) -> None:
    settings: dict[str, Any] = {"diagnosis": True, "top_k": 1, "capacity": 2}
    one, two = ada(**settings), AMemGymEnv("tiny", **settings)
    one.action_space.seed(cut)
    actions = [one.action_space.sample() for _ in range(8)]
    for action in actions[:cut]:
        one.step(action)
    snapshot = json.loads(json.dumps(one.get_state()))
    observation, _ = two.set_state(snapshot)
    assert observation == one._observe()[0]
    for action in actions[cut:]:
        assert one.step(action) == two.step(action)
    assert one.get_state() == two.get_state()
    ids = [env.reset()[1] for env in (one, two)]
    assert ids[0] == ids[1]


def test_a_fork_leaves_the_first_episode_alone(ada: Any) -> None:
    one = ada()
    snapshot = one.get_state()
    two = AMemGymEnv("tiny")
    two.set_state(snapshot)
    two.step(say("", Operation.add("x")))
    assert one.get_state() == snapshot


def test_a_snapshot_of_other_settings_or_another_kind_is_refused(
    ada: Any, tiny: list[Scenario]
) -> None:
    snapshot = ada().get_state()
    with pytest.raises(ConfigError, match="expected one of script"):
        AMemGymEnv("tiny", rounds_update=3).set_state(snapshot)
    with pytest.raises(ConfigError, match="get_state"):
        AMemGymEnv("tiny").set_state({"episode": 3})
    with pytest.raises(ConfigError, match="expected an id"):
        AMemGymEnv(tiny[1:]).set_state(snapshot)


@pytest.mark.slow
def test_episodes_are_the_same_under_any_hash_seed() -> None:
    program = (
        "from amemgym_env.envs.text.env import AMemGymEnv\n"
        "env = AMemGymEnv('tiny', difficulty='hard', diagnosis=True)\n"
        "env.action_space.seed(1)\n"
        "for seed in (1, 2, 3):\n"
        "    env.reset(seed=seed); over = False\n"
        "    while not over:\n"
        "        observation, _, over, _, info = env.step(env.action_space.sample())\n"
        "        print(observation)\n"
        "    print(info['hash'])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed, "PATH": "", "TZ": zone},
        ).stdout
        for seed, zone in (("0", "UTC"), ("123", "Asia/Tokyo"))
    }
    assert len(outputs) == 1


# ---- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scenarios": "tinny"}, "found 'tinny'"),
        ({"scenarios": []}, "at least one scenario"),
        ({"scenarios": [{}]}, r"scenarios\[0\]: expected a Scenario, found dict"),
        ({"limit": 0}, "limit: expected an integer of at least 1"),
        ({"difficulty": "brutal"}, "difficulty: expected one of"),
        ({"capacity": 0}, "capacity: expected an integer of at least 1"),
        ({"capacity": True}, "capacity"),
        ({"top_k": -1}, "top_k: expected an integer of at least 0, 'all' or None, found -1"),
        ({"top_k": "some"}, "top_k"),
        ({"rounds_initial": 0}, "rounds_initial"),
        ({"rounds_update": 0}, "rounds_update"),
        ({"reward": "sum"}, "reward: expected one of"),
        ({"max_steps": 0}, "max_steps: expected an integer of at least 1"),
        ({"render_mode": "rgb_array"}, "render_mode: expected one of"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_one_clear_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AMemGymEnv(**settings)


def test_scenarios_may_be_a_path_or_objects_and_are_checked(
    tiny: list[Scenario], tiny_items: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(tiny_items), encoding="utf-8")
    assert [item.id for item in AMemGymEnv(path).scenarios] == [item.id for item in tiny]
    assert len(AMemGymEnv(tiny, limit=2).scenarios) == 2
    with pytest.raises(ScenarioError, match="unique id"):
        AMemGymEnv([tiny[0], tiny[0]])
    broken = tiny[0].model_copy(update={"qas": []})
    with pytest.raises(ScenarioError, match="qas: expected at least one question"):
        AMemGymEnv([broken])


def test_every_constructor_argument_stands_in_the_table_of_the_docs() -> None:
    table = AMemGymEnv.__doc__ or ""
    for name in list(inspect.signature(AMemGymEnv.__init__).parameters)[
        1:-1
    ]:  # the last takes unknown names
        assert f"| {name} |" in table
