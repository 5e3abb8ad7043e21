"""Metrics: one pure function each, with its direction, range and kind of submission."""
