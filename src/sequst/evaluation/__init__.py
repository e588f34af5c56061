"""Evaluation: span scores and calibration, from 0 to 100."""
