"""Reading what ``save`` has written: any estimator of this library."""

import os
from typing import TypeAlias

from quickmeans.cluster import QKMeans
from quickmeans.files import container, indexes
from quickmeans.kernel_approximation import QKNystroem
from quickmeans.neighbors import QKNeighbors
from quickmeans.neighbors_transformer import QKNeighborsTransformer
from quickmeans.search.storage import read_lists

Estimator: TypeAlias = QKMeans | QKNystroem | QKNeighbors

_MODELS = {kind.__name__: kind for kind in (QKMeans, QKNystroem)}
_INDEXES = {kind.__name__: kind for kind in (QKNeighbors, QKNeighborsTransformer)}


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model or an index that its ``save`` has written.

    Parameters
    ----------
    path : str or path
        The file; an index has a second one beside it.

    Returns
    -------
    QKMeans, QKNystroem, QKNeighbors or QKNeighborsTransformer
        As it was saved.

    Raises
    ------
    InvalidModelError
        If the file is anything else, was changed since, or has a newer format; a :class:`ValueError`.
    OSError
        If the file cannot be read; :class:`FileNotFoundError` if there is none.
    """
    with container.explaining(path, "model"):
        state = container.read(path)
        if state.kind in _MODELS:
            return _MODELS[state.kind].from_state(state)
        if state.kind in _INDEXES:
            return _INDEXES[state.kind].from_state(state, read_lists(indexes.checked_lists(path, state)))
        raise ValueError(f"its class must be one of {', '.join([*_MODELS, *_INDEXES])}, got {state.kind[:50]!r}.")
