"""The job `evolve`: agents that rewrite their own memory prompt."""
