"""The demo, the benchmarks, and the paper's grid with its tables and figures."""
