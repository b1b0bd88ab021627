"""QuicK-means: k-means whose centroids are a learned product of sparse matrices."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quickmeans.cluster import QKMeans
    from quickmeans.data.open import open_rows
    from quickmeans.kernel_approximation import QKNystroem
    from quickmeans.models import load
    from quickmeans.neighbors import QKNeighbors
    from quickmeans.neighbors_transformer import QKNeighborsTransformer
    from quickmeans.state import InvalidModelError
    from quickmeans.sweeps import sweep
    from quickmeans.transform import SparseProduct

__version__ = "0.1.0"
__all__ = [
    "InvalidModelError",
    "QKMeans",
    "QKNeighbors",
    "QKNeighborsTransformer",
    "QKNystroem",
    "SparseProduct",
    "__version__",
    "load",
    "open_rows",
    "sweep",
]

# Where each public name lives; imported when first asked for, so that `quickmeans --help` need not load scikit-learn.
_HOMES = {
    "InvalidModelError": "quickmeans.state",
    "QKMeans": "quickmeans.cluster",
    "QKNeighbors": "quickmeans.neighbors",
    "QKNeighborsTransformer": "quickmeans.neighbors_transformer",
    "QKNystroem": "quickmeans.kernel_approximation",
    "SparseProduct": "quickmeans.transform",
    "load": "quickmeans.models",
    "open_rows": "quickmeans.data.open",
    "sweep": "quickmeans.sweeps",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quickmeans' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
