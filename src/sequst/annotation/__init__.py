"""What to label next, and which labels look wrong."""
