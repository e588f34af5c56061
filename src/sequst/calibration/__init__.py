"""Calibration: temperature, entity confidence, abstention, reliability."""
