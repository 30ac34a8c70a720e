"""Measurements of the course on this machine, one in each file; scripts/bench starts them."""
