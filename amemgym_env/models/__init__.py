"""Clients of language models: calls, usage, budgets, caches, journals."""
