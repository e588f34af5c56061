"""What exists in the tagger for speed alone. Each fast path equals a plain one and is tested against it."""
