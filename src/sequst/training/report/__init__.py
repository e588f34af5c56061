"""The report of a run: curves, scores, calibration and pseudo-labels as one page."""
