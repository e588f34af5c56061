"""Whether a confidence means what it says: reliability, temperature, entity confidence, abstention."""
