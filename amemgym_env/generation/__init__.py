"""Scenario sets: personas, the offline generator, names of sets, and the audit of their quality."""
