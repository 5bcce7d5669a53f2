"""Baseline memory policies and the benchmark that scores them."""
