"""The job `sensitivity`: effect of prompt wordings and users."""
