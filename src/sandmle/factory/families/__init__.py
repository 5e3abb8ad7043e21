"""Procedural families, one file each."""
