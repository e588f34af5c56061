"""The methods, one file each. `registry` lists them by name."""
