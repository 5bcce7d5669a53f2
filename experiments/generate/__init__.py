"""The job `generate`: scenario sets."""
