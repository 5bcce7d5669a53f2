"""Shared parts of the jobs: command line, settings, run folders, progress, tables."""
