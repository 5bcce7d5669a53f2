"""Factories of agents from their settings."""

from __future__ import annotations

import importlib
import sys

import agents
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.driver import AgentMaker
from amemgym_env.policies.checkpoint import PolicyWriter
from experiments.app.settings import Settings, checked
from experiments.evaluate.settings import (
    AgentSettings,
    AWIAgent,
    IndexAgent,
    NativeAgent,
    OwnAgent,
    PolicyAgent,
)


def agent_maker(settings: AgentSettings) -> AgentMaker:
    """Return the factory of the agent that settings describe.

    Raises:
        ConfigError: the user's own agent cannot be imported, or lacks methods.
    """
    if isinstance(settings, NativeAgent):
        return agents.Native
    if isinstance(settings, AWIAgent):
        return lambda models: agents.AWI(models, settings.freq, settings.ns)
    if isinstance(settings, IndexAgent):
        kind = {"rag": agents.RAG, "awe": agents.AWE}[settings.name]
        return lambda models: kind(models, settings.freq, settings.ns, settings.top_k)
    if isinstance(settings, PolicyAgent):
        return _policy_agent(settings)
    return _own_agent(settings)


_METHODS = ("reset", "reply", "write", "answer", "probe", "state_dict", "load_state_dict")
_SIZES = {
    "native": (),
    "awi": ("freq", "ns"),
    "rag": ("freq", "ns", "top_k"),
    "awe": ("freq", "ns", "top_k"),
}


def agent_settings(label: str) -> AgentSettings:
    """Return the settings of an agent from its label, such as `awe-2-4-30`.

    Raises:
        ConfigError: it is no label of a known agent.
    """
    name, *numbers = label.split("-")
    sizes = _SIZES.get(name)
    if sizes is None or len(sizes) != len(numbers) or not all(map(str.isdecimal, numbers)):
        raise ConfigError(
            "agents: expected native, rag-FREQ-NS-TOPK, awe-FREQ-NS-TOPK or awi-FREQ-NS, "
            f"found {label!r}"
        )
    given = {"name": name, **dict(zip(sizes, map(int, numbers), strict=True))}
    return checked(_Agent, {"agent": given}).agent


class _Agent(Settings):
    agent: AgentSettings


def _policy_agent(settings: PolicyAgent) -> AgentMaker:
    from experiments.train.checkpoints import load

    policy = load(settings.checkpoint, settings.trust)
    PolicyWriter(policy)  # refuses a policy with hidden inputs before anything is played
    return lambda models: agents.PolicyAgent(models, policy, settings.ns, settings.top_k)


def _own_agent(settings: OwnAgent) -> AgentMaker:
    module, _, name = settings.path.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"agent: expected package.module:Class, found {settings.path!r}: {error}"
        ) from error
    missing = [method for method in _METHODS if not callable(getattr(found, method, None))]
    if missing:
        raise ConfigError(f"agent {settings.path!r}: expected the methods {missing}, found none")
    maker: AgentMaker = found
    return maker
