"""Texts: their words, their faults, and programs that copy words out of them."""
