"""Factories of model backends from settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amemgym_env.evaluation.run import Backends
from amemgym_env.models.client import Backend
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.scenarios.script import Script
from amemgym_env.simulated.model import SimulatedModel, named_profile
from experiments.app.settings import LitellmBackend, RoleSettings, SimulatedBackend


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
