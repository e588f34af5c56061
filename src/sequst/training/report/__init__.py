"""The page that a run ends with: how it went, what the tagger can do and what it does not know."""
