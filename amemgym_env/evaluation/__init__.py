"""Evaluation: playing agents, scoring, failure attribution."""
