"""QuicK-means: k-means whose centroids are a learned product of sparse matrices."""

from quickmeans.cluster import QKMeans
from quickmeans.kernel_approximation import QKNystroem
from quickmeans.neighbors import QKNeighbors
from quickmeans.neighbors_transformer import QKNeighborsTransformer
from quickmeans.persistence import load
from quickmeans.transform import SparseProduct

__version__ = "0.1.0.dev0"
__all__ = ["QKMeans", "QKNeighbors", "QKNeighborsTransformer", "QKNystroem", "SparseProduct", "__version__", "load"]
