"""Audits of scenario sets: leaks, statistics, judged quality."""
