"""What all jobs share: command line, settings, run folders, progress, tables."""
