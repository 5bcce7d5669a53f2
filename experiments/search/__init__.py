"""The job `search`: memory settings and operation rules."""
