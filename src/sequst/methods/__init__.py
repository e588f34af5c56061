"""One file a method; each reads like its algorithm box. `registry` knows them by name."""
