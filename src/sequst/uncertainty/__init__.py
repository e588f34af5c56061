"""What the tagger does not know: MC dropout, beliefs per word, which words to trust."""
