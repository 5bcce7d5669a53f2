"""The job `train`: memory policies with stable-baselines3."""
