"""Makes agents and backends from settings."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import agents
from amemgym_env.backend import Backend, Models
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation import Backends, MakeAgent
from amemgym_env.script import Script
from amemgym_env.simulated import SimulatedModel, named_profile
from amemgym_env.turn import Agent
from experiments.settings import (
    AgentSettings,
    AWIAgent,
    IndexAgent,
    LitellmBackend,
    NativeAgent,
    OwnAgent,
    RoleSettings,
    SimulatedBackend,
)


def agent_maker(settings: AgentSettings) -> MakeAgent:
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
    return _own_agent(settings)


def _own_agent(settings: OwnAgent) -> MakeAgent:
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
    takes_models = len(inspect.signature(found).parameters) > 0

    def make(models: Models) -> Agent:
        made: Agent = found(models) if takes_models else found()
        return made

    return make


def backends(
    assistant: SimulatedBackend | LitellmBackend, roles: Mapping[str, RoleSettings]
) -> Backends:
    """Return what makes the backends of an episode; real models are shared by all episodes.

    Raises:
        ConfigError: an unknown profile, or a model that cannot be used.
    """
    settings: dict[str, Any] = {"assistant": assistant}
    settings |= {role: given for role, given in roles.items() if given.name != "same"}
    shared = {
        role: _litellm(given)
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


def _litellm(settings: LitellmBackend) -> Backend:
    from amemgym_env.litellm_backend import LitellmModel

    return LitellmModel(**settings.model_dump(exclude={"name"}))
