"""One loop for every phase of every method; settings; the run directory that survives a crash."""
