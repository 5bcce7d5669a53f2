"""The job `benchmark`: speed and memory, as ratios."""
