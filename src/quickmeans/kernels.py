"""The one door to the native module."""

from quickmeans._native import (
    Entries,
    Product32,
    Product64,
    add_members,
    fit_supports,
    gaussian,
    instruction_sets,
    mark_largest,
    masked_product,
    match_largest,
    moments,
    seed,
    smallest,
)

__all__ = [
    "Entries",
    "Product32",
    "Product64",
    "add_members",
    "fit_supports",
    "gaussian",
    "instruction_sets",
    "mark_largest",
    "masked_product",
    "match_largest",
    "moments",
    "seed",
    "smallest",
]
