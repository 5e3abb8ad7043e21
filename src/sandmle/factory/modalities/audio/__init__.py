"""Sounds: what families compose them of, and what mutations do to them."""
