"""Grading: the only place where a submission becomes a score."""
