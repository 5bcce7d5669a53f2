"""The simulated language model."""
