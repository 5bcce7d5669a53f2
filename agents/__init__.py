"""The paper's memory agents, written over Prompts; names for `agent=`. Paper: Section 4.1."""

from agents.assistant import Assistant
from agents.awe import AWE
from agents.awi import AWI
from agents.native import Native
from agents.policy import PolicyAgent
from agents.rag import RAG

__all__ = ["AWE", "AWI", "RAG", "Assistant", "Native", "PolicyAgent"]
