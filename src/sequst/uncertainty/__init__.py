"""Uncertainty: MC dropout, beliefs about words, selectors."""
