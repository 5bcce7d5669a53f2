"""The text environment `AMemGym-v0`."""
