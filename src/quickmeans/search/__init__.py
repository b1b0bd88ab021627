"""Nearest-neighbour search: rows in inverted lists, and the coarse step that finds the lists of a query."""
