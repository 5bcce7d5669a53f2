"""AMemGym-env: a memory for conversational assistants, evaluated and trained in Gymnasium.

Importing the package registers the environments `AMemGym-v0` and names the public things.
"""

import gymnasium as _gymnasium

from amemgym_env.actions import answers, say, values
from amemgym_env.env import AMemGymEnv
from amemgym_env.errors import AMemGymError
from amemgym_env.scenario import Scenario
from amemgym_env.turn import NO_ANSWER, UNSCORED, Agent, Answer, Entry, Operation, Value

__version__ = "0.1.0"

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
    "answers",
    "say",
    "values",
]

if "AMemGym-v0" not in _gymnasium.registry:  # importing twice is no re-registration
    _gymnasium.register(id="AMemGym-v0", entry_point="amemgym_env.env:AMemGymEnv")
