"""Real models through litellm."""
