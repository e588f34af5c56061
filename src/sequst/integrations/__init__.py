"""Thin adapters to other tools."""
