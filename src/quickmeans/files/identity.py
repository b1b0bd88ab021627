"""Digests that tell whether a fit has the same rows and the same parameters as another one."""

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# These parameters change how far, how fast and how visibly a fit runs, but not what it computes.
_FREE = {"max_iter", "n_threads", "verbose", "callback", "checkpoint", "algorithm", "copy_x"}


def identity_of_data(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    total: float,
    mean: NDArray[np.float64],
    variances: NDArray[np.float64],
) -> str:
    """A digest of the rows: of their shape, type, total weight, and moments by column."""
    digest = hashlib.sha256(f"{shape[0]} {shape[1]} {dtype} {total!r}".encode())
    digest.update(mean.tobytes())
    digest.update(variances.tobytes())
    return digest.hexdigest()


def identity_of_parameters(parameters: Mapping[str, Any]) -> str:
    """A digest of the values of the parameters that decide the result; equal values have equal digests."""
    given = {name: value for name, value in parameters.items() if name not in _FREE}
    if not isinstance(given.get("random_state"), int | np.integer):
        given.pop("random_state", None)  # the checkpoint has the seed
    text = json.dumps({name: _plain(name, value) for name, value in given.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(name: str, value: Any) -> Any:
    """The value as JSON can write it, the same for equal values."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating):
        return int(value) if value == np.floor(value) else float(value)
    if callable(value):
        return _name_of(name, value)
    try:
        array = np.ascontiguousarray(value, np.float64) + 0.0  # no negative zeros
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, a string, an array or a function, got {value!r}.") from None
    return [list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]


def _name_of(parameter: str, function: Any) -> str:
    """The module and the name of a function, if it can be found by them."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    home: Any = sys.modules.get(str(module))
    for part in str(name).split("."):
        home = getattr(home, part, None)
    if home is not function:
        raise ValueError(
            f"With a checkpoint {parameter} must be a function from the top level of a module, got {function!r}: "
            "lambdas, inner functions and partial functions cannot be told apart when a fit goes on."
        )
    return f"{module}.{name}"
