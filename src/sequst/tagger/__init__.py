"""Words -> sub-words -> batches -> encoder -> head -> tags. Saves and loads itself."""
