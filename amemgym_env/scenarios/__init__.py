"""Scenarios, the hidden truth, and the scripts that make them playable."""
