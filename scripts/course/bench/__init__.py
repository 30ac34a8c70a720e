"""The benchmarks: `scripts/bench NAME` runs the module NAME of this package."""
