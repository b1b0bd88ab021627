"""Inverted lists: what is scanned, once the coarse step has said where."""
