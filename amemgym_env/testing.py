"""Contract checks for users' own environments, agents and backends.

```python
from amemgym_env.testing import check_agent
from my_agent import MyAgent

def test_my_agent():
    assert check_agent(MyAgent)
```

A check raises `AssertionError` at the first broken rule and returns a `Report`, which also says
what it could not check, and why.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.utils.env_checker import check_env as gymnasium_check

from amemgym_env.agent import Agent, Answer, Operation, Phase, Value
from amemgym_env.envs.text.actions import answers, say, values
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.episode import Episode
from amemgym_env.evaluation.driver import AgentMaker, made_agent
from amemgym_env.evaluation.run import simulated
from amemgym_env.models.client import Backend, Call, Completion, Models, Usage
from amemgym_env.prompts.assistant import AssistantReply, Context
from amemgym_env.prompts.base import BUILT_IN
from amemgym_env.scenarios.model import Scenario


class Report(NamedTuple):
    """What a check has done."""

    checked: tuple[str, ...]
    not_checked: tuple[str, ...]
    """What could not be checked, each with the reason."""


_SECRET = re.compile(
    r"sk-[A-Za-z0-9_-]{8,}|Bearer \S{8,}|(?i:api_?key|password|secret)\"?: \"[^\"]"
)
_STEPS = 200


def check_env(make_env: Callable[[], gym.Env[Any, Any]], steps: int = _STEPS) -> Report:
    """Check an environment: Gymnasium's own checker is silent, and this project's rules hold.

    Random play stays inside the spaces; the same seed and actions give the same steps; a snapshot
    forks an episode; exam and probe leave the memory alone; the environment pickles.
    """
    checked, not_checked = ["gymnasium's check_env without a warning"], []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gymnasium_check(make_env().unwrapped, skip_render_check=True)
    first, second = _random_play(make_env(), steps), _random_play(make_env(), steps)
    assert first == second, "two plays of the same seed and actions differ"
    checked += ["observations inside their space", "same seed and actions, same steps"]
    inner = make_env().unwrapped
    if isinstance(inner, AMemGymEnv):
        _check_fork(make_env)
        checked += ["a snapshot forks the episode", "exam and probe leave the memory alone"]
    else:
        not_checked.append(f"snapshots: {type(inner).__name__} is not AMemGym-v0")
    try:
        pickled = pickle.dumps(inner)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        not_checked.append(f"pickling: {error}")
    else:
        assert not _SECRET.search(pickled.decode("latin-1")), "a pickled environment holds a secret"
        checked.append("the environment pickles, without secrets")
    return Report(tuple(checked), tuple(not_checked))


def _random_play(env: gym.Env[Any, Any], steps: int) -> list[str]:
    env.action_space.seed(7)
    observation, info = env.reset(seed=7)
    seen = [repr((observation, info))]
    for _ in range(steps):
        action = env.action_space.sample()
        assert action in env.action_space, f"a sample is no legal action: {action!r:.300}"
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space, f"outside of its space: {observation!r:.300}"
        assert isinstance(reward, float), f"expected a float as reward, found {reward!r}"
        assert not (terminated and truncated), "a step is both terminated and truncated"
        seen.append(repr((observation, reward, terminated, truncated, info)))
        if terminated or truncated:
            observation, info = env.reset()
            seen.append(repr((observation, info)))
    env.close()
    return seen


def _check_fork(make_env: Callable[[], gym.Env[Any, Any]]) -> None:
    one, two = make_env().unwrapped, make_env().unwrapped
    assert isinstance(one, AMemGymEnv)
    assert isinstance(two, AMemGymEnv)
    one.action_space.seed(3)
    observation, _ = one.reset(seed=3)
    over = False
    while not over:
        snapshot = json.loads(json.dumps(one.get_state(), allow_nan=False))
        copied, _ = two.set_state(snapshot)
        assert repr(copied) == repr(observation), "a restored snapshot shows something else"
        before = one.episode.bank
        action = one.action_space.sample()
        stepped, again = one.step(action), two.step(action)
        assert repr(stepped) == repr(again), "a fork goes on differently"
        phase = observation["phase"]
        kept = phase == Phase.DIALOGUE or one.episode.bank == before
        assert kept, f"{Phase(phase).name} changed the memory"
        observation, over = stepped[0], stepped[2] or stepped[3]


def check_agent(
    make_agent: AgentMaker, scenarios: str | Sequence[Scenario] = "tiny", top_k: int = 5
) -> Report:
    """Check an agent by playing it through scenarios with the simulated model, probes included.

    `make_agent` makes an agent, from the models (as for `evaluate`) or from nothing. Replies,
    operations, answers and values have the right types and numbers; answering changes neither the
    agent's state nor the memory; the state is JSON without secrets; a second agent that loads it
    goes on identically.
    """
    checked = [
        "types of replies, operations, answers and values",
        "the number of answers",
        "exam and probe leave state and memory alone",
        "the state is JSON without secrets",
    ]
    not_checked = []
    top_k = getattr(made_agent(make_agent, Models({})), "top_k", top_k)
    env = AMemGymEnv(scenarios, diagnosis=True, top_k="all" if top_k < 0 else top_k)
    external = False
    for scenario in env.scenarios:
        first = _play(make_agent, env, scenario.id, fork_at=None)
        external = external or first.external
        if first.trace != _play(make_agent, env, scenario.id, fork_at=None).trace:
            not_checked.append(
                f"continuing from a saved state in {scenario.id!r}: two plays already differ"
            )
            continue
        length = len(first.trace)
        for fork_at in sorted({1, length // 2, length - 2}):
            forked = _play(make_agent, env, scenario.id, fork_at)
            assert forked.trace == first.trace, (
                f"loading its state before step {fork_at} of {scenario.id!r}, the agent goes on "
                "differently; state_dict() must hold everything that later calls depend on"
            )
        checked.append(f"continuing from a saved state in {scenario.id!r}")
    if external:
        not_checked.append("the agent's own memory: it keeps one outside of the environment")
    return Report(tuple(checked), tuple(not_checked))


class _Play(NamedTuple):
    trace: list[str]
    external: bool


def _play(make_agent: AgentMaker, env: AMemGymEnv, scenario: str, fork_at: int | None) -> _Play:
    env.reset(seed=1, options={"scenario": scenario})
    agent = _made(make_agent, env.episode)
    agent.reset(env.view)
    trace: list[str] = []
    over = False
    while not over:
        state = _state(agent)
        if len(trace) == fork_at:
            agent = _made(make_agent, env.episode)
            agent.reset(env.view)
            agent.load_state_dict(json.loads(state))
            assert _state(agent) == state, "an agent that loads a state has another one"
        phase = env.episode.place.phase
        if phase is Phase.DIALOGUE:
            action = _talk(agent, env)
        else:
            entries = env.view.entries()
            action = _examine(agent, env) if phase is Phase.EXAM else _probe(agent, env)
            assert _state(agent) == state, (
                f"{phase.name} changed the agent's state; asking must not touch what it remembers"
            )
            assert env.view.entries() == entries, f"{phase.name} changed the memory"
        trace.append(repr(action))
        _, _, over, _, info = env.step(action)
        trace[-1] += repr(info["operations"])
    return _Play(trace, getattr(agent, "memory", "bank") == "external")


def _made(make_agent: AgentMaker, episode: Episode) -> Agent:
    agent = made_agent(make_agent, Models(simulated()(episode.script)))
    assert isinstance(agent, Agent), (
        f"expected the methods of turn.Agent, found {type(agent).__name__} with "
        f"{[name for name in dir(agent) if not name.startswith('_')]}"
    )
    return agent


def _talk(agent: Agent, env: AMemGymEnv) -> dict[str, Any]:
    turn = env.turn()
    before = copy.deepcopy(turn)
    reply = agent.reply(turn)
    assert isinstance(reply, str), f"reply: expected a string, found {reply!r:.80}"
    operations = agent.write(turn, reply)
    for operation in operations:
        assert isinstance(operation, Operation), (
            f"write: expected Operations, found {operation!r:.80}; see Operation.add"
        )
    assert turn == before, "the agent changed the turn that it was shown"
    return say(reply, *operations)


def _examine(agent: Agent, env: AMemGymEnv) -> dict[str, Any]:
    exam = env.exam()
    before = copy.deepcopy(exam)
    given = agent.answer(exam)
    assert len(given) == len(exam.questions), (
        f"answer: expected {len(exam.questions)} answers, found {len(given)}"
    )
    for item in given:
        kind = isinstance(item, Answer | int) and not isinstance(item, bool)
        assert kind, f"answer: expected an Answer or an index, found {item!r:.80}"
    assert exam == before, "the agent changed the exam that it was shown"
    return answers(given)


def _probe(agent: Agent, env: AMemGymEnv) -> dict[str, Any]:
    probe = env.probe()
    before = copy.deepcopy(probe)
    given = agent.probe(probe)
    wanted = [len(question.variables) for question in probe.questions]
    found = [len(row) for row in given]
    assert found == wanted, f"probe: expected {wanted} values, found {found}"
    for item in (item for row in given for item in row):
        kind = isinstance(item, Value | int) and not isinstance(item, bool)
        assert kind, f"probe: expected a Value or an index, found {item!r:.80}"
    assert probe == before, "the agent changed the probe that it was shown"
    return values(given)


def _state(agent: Agent) -> str:
    state = agent.state_dict()
    assert isinstance(state, Mapping), f"state_dict: expected a dict, found {state!r:.80}"
    try:
        text = json.dumps(dict(state), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"state_dict: expected a JSON object, found {error}") from error
    _check_no_secrets(text, "state_dict")
    return text


def _check_no_secrets(text: str, what: str) -> None:
    """Look for what is written like a key, and for values of the environment's secrets."""
    assert not _SECRET.search(text), f"{what}: expected no secrets, found one"
    for name, value in os.environ.items():
        named = any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD"))
        held = named and len(value) >= 8 and value in text
        assert not held, f"{what}: expected no secrets, found the value of ${name}"


def check_backend(backend: Backend) -> Report:
    """Check a backend with one call of the assistant: types, accounts, and nothing changed.

    A simulated backend must also give the same reply twice. The call goes out: a real model's
    backend costs what one short reply costs.
    """
    assert isinstance(backend, Backend), f"expected a Backend, found {type(backend).__name__}"
    assert isinstance(backend.name, str), "name: expected a text that identifies the model"
    assert backend.name, "name: expected a text that identifies the model, found none"
    parameters = json.dumps(dict(backend.parameters), allow_nan=False)
    _check_no_secrets(parameters, "parameters")
    _check_no_secrets(repr(backend), "repr")
    prompt = AssistantReply(Context(("likes tea",)), "Which biscuit goes with {green} tea? 🙂")
    call = Call(prompt.kind, prompt.role, prompt.render(BUILT_IN))
    before = copy.deepcopy(call)
    completion = backend.complete(call)
    assert call == before, "complete: the call was changed"
    assert isinstance(completion, Completion), f"complete: expected a Completion: {completion!r}"
    assert isinstance(completion.text, str), f"text: expected a string, found {completion.text!r}"
    assert isinstance(completion.usage, Usage), f"usage: expected Usage, found {completion.usage!r}"
    used = completion.usage
    assert used.calls >= 1, "usage: expected at least one call"
    assert min(used.prompt_tokens, used.completion_tokens, used.cached_tokens) >= 0
    checked = ["name and parameters without secrets", "types", "accounts", "the call unchanged"]
    if not backend.simulated:
        return Report(tuple(checked), ("repeatability: a real model may answer differently",))
    assert backend.complete(call).text == completion.text, "a simulated reply is not repeatable"
    return Report((*checked, "the same call, the same reply"), ())
