"""Prompts: template, schema and parser of every call of a language model."""

from amemgym_env.prompts.base import BUILT_IN, Message, Prompt, Templates, message

__all__ = ["BUILT_IN", "Message", "Prompt", "Templates", "message"]
