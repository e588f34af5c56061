"""How good a tagger is: span scores and calibration. Every score is on the scale of 0 to 100."""
