"""Makes agents and backends from settings."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import agents
from amemgym_env.backend import Backend
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation import Backends
from amemgym_env.litellm_backend import LitellmModel
from amemgym_env.play import AgentMaker
from amemgym_env.policies import PolicyWriter
from amemgym_env.script import Script
from amemgym_env.simulated import SimulatedModel, named_profile
from experiments.settings import (
    AgentSettings,
    AWIAgent,
    IndexAgent,
    LitellmBackend,
    NativeAgent,
    OwnAgent,
    PolicyAgent,
    RoleSettings,
    SimulatedBackend,
)


def agent_maker(settings: AgentSettings) -> AgentMaker:
    """Return what makes the agent that settings describe.

    Raises:
        ConfigError: an agent of one's own cannot be imported or is no agent.
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


def _policy_agent(settings: PolicyAgent) -> AgentMaker:
    from experiments.sb3_zip import load

    policy = load(settings.checkpoint, settings.trust)
    PolicyWriter(policy)  # one that observes hidden things is refused before anything is played
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
    missing = [
        method
        for method in (
            "reset",
            "reply",
            "write",
            "answer",
            "probe",
            "state_dict",
            "load_state_dict",
        )
        if not callable(getattr(found, method, None))
    ]
    if missing:
        raise ConfigError(f"agent {settings.path!r}: expected the methods {missing}, found none")
    maker: AgentMaker = found
    return maker


def backends(
    assistant: SimulatedBackend | LitellmBackend,
    roles: Mapping[str, RoleSettings],
    *,
    offline: bool = False,
) -> Backends:
    """Return what makes the backends of an episode; real models are shared by all episodes.

    `offline` lets real models make no call, whatever their settings say.

    Raises:
        ConfigError: an unknown profile, or a model that cannot be used.
    """
    settings: dict[str, Any] = {"assistant": assistant}
    settings |= {role: given for role, given in roles.items() if given.name != "same"}
    shared = {
        role: litellm_model(given.model_copy(update={"offline": offline or given.offline}))
        for role, given in settings.items()
        if isinstance(given, LitellmBackend)
    }
    profiles = {
        role: given.profile
        for role, given in settings.items()
        if isinstance(given, SimulatedBackend)
    }
    for profile in profiles.values():
        named_profile(profile)

    def of(script: Script) -> dict[str, Backend]:
        simulated = {role: SimulatedModel(script, profile) for role, profile in profiles.items()}
        return {**shared, **simulated}

    return of


def litellm_model(settings: LitellmBackend) -> LitellmModel:
    """Return a real model; no call is made yet.

    Raises:
        ConfigError: its address or key is wrong.
    """
    return LitellmModel(**settings.model_dump(exclude={"name"}))
