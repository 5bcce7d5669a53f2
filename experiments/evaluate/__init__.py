"""The job `evaluate`: agents played through scenarios."""
