"""Scenarios made by a language model."""
