"""The training loop, settings, and the run directory."""
