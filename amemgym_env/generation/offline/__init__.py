"""Scenarios from the topic library, without a model."""
