"""Sentences and tags: reading, checking, sampling, writing. Imports no torch."""
