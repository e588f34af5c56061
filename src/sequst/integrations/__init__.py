"""Thin adapters to other tools. Empty so far."""
