"""AMemGym-env: a memory for conversational assistants, evaluated and trained in Gymnasium.

Importing the package registers its environments and names the public things; each is loaded when
it is first used, so that the import stays light.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

import gymnasium as _gymnasium

from amemgym_env.version import VERSION as __version__

if _TYPE_CHECKING:
    from amemgym_env.agent import NO_ANSWER, UNSCORED, Agent, Answer, Entry, Operation, Value
    from amemgym_env.envs.text.actions import answers, say, values
    from amemgym_env.envs.text.env import AMemGymEnv
    from amemgym_env.errors import AMemGymError
    from amemgym_env.evaluation.run import evaluate
    from amemgym_env.scenarios.model import Scenario

__all__ = [
    "NO_ANSWER",
    "UNSCORED",
    "AMemGymEnv",
    "AMemGymError",
    "Agent",
    "Answer",
    "Entry",
    "Operation",
    "Scenario",
    "Value",
    "__version__",
    "answers",
    "evaluate",
    "say",
    "values",
]

_MODULES = {
    "envs.text.actions": ("answers", "say", "values"),
    "envs.text.env": ("AMemGymEnv",),
    "errors": ("AMemGymError",),
    "evaluation.run": ("evaluate",),
    "scenarios.model": ("Scenario",),
    "agent": ("NO_ANSWER", "UNSCORED", "Agent", "Answer", "Entry", "Operation", "Value"),
}
_ENVIRONMENTS = {
    "AMemGym-v0": ("amemgym_env.envs.text.env:AMemGymEnv", None),
    "AMemGymMemory-v0": (
        "amemgym_env.envs.memory.env:AMemGymMemoryEnv",
        "amemgym_env.envs.memory.vector_env:AMemGymMemoryVectorEnv",
    ),
    "AMemGymSlots-v0": (
        "amemgym_env.envs.memory.env:AMemGymSlotsEnv",
        "amemgym_env.envs.memory.vector_env:AMemGymSlotsVectorEnv",
    ),
}
"""Id -> entry point of one environment, and of a native vector environment where there is one."""


def __dir__() -> list[str]:
    """Return the public names, those not yet loaded included."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Return a public thing from the module that defines it."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(_import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _id, (_entry_point, _vector_entry_point) in _ENVIRONMENTS.items():
    if _id not in _gymnasium.registry:  # importing twice is no re-registration
        _gymnasium.register(
            id=_id, entry_point=_entry_point, vector_entry_point=_vector_entry_point
        )
