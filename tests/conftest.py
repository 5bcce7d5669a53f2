"""What all tests share: no network, tiny scenarios, and a runs folder of their own."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.agent import Phase
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios.model import Scenario

REAL_DATA = Path(__file__).parents[2] / "shared" / "data" / "amemgym-v1.base.json"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("evidence"):
            item.add_marker(pytest.mark.slow)  # `-m "not slow"` leaves out the long runs as well


def _is_loopback(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a socket in the file system
    return str(address[0]) in ("localhost", "::1") or str(address[0]).startswith("127.")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("connect", "connect_ex"):
        real = getattr(socket.socket, name)

        def guarded(self: socket.socket, address: Any, _real: Any = real) -> Any:
            if not _is_loopback(address):
                raise OSError(f"tests have no network; something connects to {address!r}")
            return _real(self, address)

        monkeypatch.setattr(socket.socket, name, guarded)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tiny_items() -> list[dict[str, Any]]:
    text = resources.files("amemgym_env").joinpath("scenarios", "tiny.json").read_text("utf-8")
    items: list[dict[str, Any]] = json.loads(text)
    return items


@pytest.fixture
def tiny(tiny_items: list[dict[str, Any]]) -> list[Scenario]:
    return scenario_files.parse(tiny_items)


@pytest.fixture
def real_data() -> Path:
    if not REAL_DATA.exists():
        pytest.skip("the benchmark's data set is not there")
    return REAL_DATA


@pytest.fixture
def ada() -> Callable[..., AMemGymEnv]:
    """Makes an environment in which tiny-ada has begun."""

    def make(**settings: Any) -> AMemGymEnv:
        env = AMemGymEnv("tiny", **settings)
        env.reset(seed=0, options={"scenario": "tiny-ada"})
        return env

    return make


@pytest.fixture
def to_exam() -> Callable[[AMemGymEnv], None]:
    """Plays empty rounds up to the next exam."""

    def play(env: AMemGymEnv) -> None:
        while env.episode.place.phase is Phase.DIALOGUE:
            env.step(say(""))

    return play


@pytest.fixture
def right() -> Callable[[AMemGymEnv], dict[str, Any]]:
    """Makes the action that answers everything rightly."""

    def action(env: AMemGymEnv) -> dict[str, Any]:
        script, place = env.episode.script, env.episode.place
        if place.phase is not Phase.PROBE:
            return answers(script.right_shown[place.period])
        schema, state = script.scenario.state_schema, script.scenario.periods[place.period].state
        return values(
            [schema[name].index(state[name]) for name in question.variables]
            for question in script.scenario.qas
        )

    return action


@pytest.fixture
def run() -> Callable[[AMemGymEnv, Callable[[AMemGymEnv], Any]], list[tuple[Any, ...]]]:
    """Plays to the end and returns all steps."""

    def play(env: AMemGymEnv, act: Callable[[AMemGymEnv], Any]) -> list[tuple[Any, ...]]:
        steps: list[tuple[Any, ...]] = []
        while not steps or not (steps[-1][2] or steps[-1][3]):
            steps.append(env.step(act(env)))
        return steps

    return play
