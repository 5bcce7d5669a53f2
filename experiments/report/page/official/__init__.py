"""Results in the official benchmark's own format."""
