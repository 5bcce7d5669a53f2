"""Memory policies: features, networks, actions, checkpoints."""
