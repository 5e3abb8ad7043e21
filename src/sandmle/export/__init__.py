"""Runs as files for other tools."""
