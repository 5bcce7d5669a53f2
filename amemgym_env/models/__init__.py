"""Clients of language models: backends, budgets, caches, journals, replay."""

from amemgym_env.models.backend import Backend, Call, Completion
from amemgym_env.models.client import Models, Outcome
from amemgym_env.models.usage import Usage

__all__ = ["Backend", "Call", "Completion", "Models", "Outcome", "Usage"]
