r"""The assignment of rows to centroids as an ONNX graph.

Its input is `X`, its outputs are `labels` and `distances`. With the mean m and centroids m + v_k, which are the rows of
a product :math:`V = S_1 \cdots S_Q` or dense (Q = 1), the graph computes

.. math:: \arg\max_k \langle x - m, v_k\rangle - \|v_k\|^2 / 2, \qquad \|x - m - v_k\| .

Distances come from differences, and not from scores. Rows go through the factors one after the other if that takes
fewer multiply-adds than V, else through V. Sparse factors are stored as positions and values. A runtime makes dense
matrices of them, and V, once, when it loads the graph: all of their nodes have constant inputs.
"""

from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.checks import check_whole
from quickmeans.kmeans.fitted import FittedClusters
from quickmeans.kmeans.geometry import squared_norms
from quickmeans.transform import SparseProduct

OLDEST_OPSET, DEFAULT_OPSET = 13, 17
_MOST_BYTES = 2_000_000_000  # protobuf has no larger messages


def onnx_library() -> ModuleType:
    """The module onnx, or an error that says how to install it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError("ONNX files need onnx, which is not installed: pip install 'quickmeans[onnx]'.") from None
    return onnx


def onnx_bytes(fitted: FittedClusters, opset: int) -> bytes:
    """The contents of an ONNX file with this version of the operators."""
    onnx = onnx_library()
    newest = onnx.defs.onnx_opset_version()
    check_whole("opset", opset, OLDEST_OPSET, most=newest)
    geometry = fitted.assigner.geometry
    graph = _Graph(onnx, geometry.dtype)
    rows, product = _centered_rows(graph, fitted), _product(fitted)
    factors = [graph.factor(S) for S in product.factors]
    labels = _labels(graph, rows, factors, None if geometry.spherical else _offset(product))
    _distances(graph, rows, factors, labels)
    return graph.file(len(geometry.mean), opset)


def _product(fitted: FittedClusters) -> SparseProduct:
    """The centered centroids: a product if they are its rows, else one dense factor."""
    assigner = fitted.assigner
    if assigner.product is None or assigner.centers_are_means:
        return SparseProduct([fitted.centers.astype(assigner.geometry.dtype)])
    return assigner.product


def _offset(product: SparseProduct) -> NDArray[np.float64]:
    return np.asarray(-squared_norms(product.toarray().astype(np.float64)) / 2)


def _centered_rows(graph: "_Graph", fitted: FittedClusters) -> str:
    geometry = fitted.assigner.geometry
    if not geometry.spherical:
        mean = geometry.mean.astype(geometry.dtype)
        rest = (geometry.mean - mean).astype(geometry.dtype)  # what rounding has left of the mean
        return graph.node("Sub", [graph.node("Sub", ["X", graph.constant(mean)]), graph.constant(rest)])
    squares = graph.node("ReduceSum", [graph.node("Mul", ["X", "X"]), graph.constant(np.array([1]))], keepdims=1)
    return graph.node("Div", ["X", graph.node("Sqrt", [squares])])


def _labels(graph: "_Graph", rows: str, factors: list[str], offset: NDArray[Any] | None) -> str:
    scores = rows
    for S in reversed(graph.cheaper(factors)):
        scores = graph.node("MatMul", [scores, graph.node("Transpose", [S], perm=[1, 0])])
    if offset is not None:
        scores = graph.node("Add", [scores, graph.constant(offset.astype(graph.dtype))])
    return graph.node("ArgMax", [scores], "labels", axis=1, keepdims=0)


def _distances(graph: "_Graph", rows: str, factors: list[str], labels: str) -> None:
    first, *others = graph.cheaper(factors)
    centers = graph.node("Gather", [first, labels], axis=0)
    for S in others:
        centers = graph.node("MatMul", [centers, S])
    difference = graph.node("Sub", [rows, centers])
    squares = graph.node("Mul", [difference, difference])
    total = graph.node("ReduceSum", [squares, graph.constant(np.array([1]))], keepdims=0)
    graph.node("Sqrt", [total], "distances")


class _Graph:
    """Nodes and constants, which get names as they come."""

    def __init__(self, onnx: ModuleType, dtype: np.dtype[Any]) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shapes: dict[str, tuple[int, int]] = {}  # of the factors
        self._product: str | None = None

    def node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add an operation, and return the name of its result."""
        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """Add an array, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def factor(self, S: Any) -> str:
        """Add a factor, and return the name of the dense matrix."""
        if sp.issparse(S) and S.nnz * (16 + self.dtype.itemsize) < S.shape[0] * S.shape[1] * self.dtype.itemsize:
            entries = S.tocoo()
            zero = self.onnx.numpy_helper.from_array(np.zeros(1, self.dtype))
            zeros = self.node("ConstantOfShape", [self.constant(np.array(S.shape, np.int64))], value=zero)
            at = np.stack([entries.row, entries.col], axis=1).astype(np.int64)
            name = self.node("ScatterND", [zeros, self.constant(at), self.constant(entries.data)])
        else:
            name = self.constant(S.toarray() if sp.issparse(S) else S)
        self.shapes[name] = S.shape
        return name

    def cheaper(self, factors: list[str]) -> list[str]:
        """The factors, or their product if rows go through it with fewer multiply-adds."""
        n_rows, n_columns = self.shapes[factors[0]][0], self.shapes[factors[-1]][1]
        if len(factors) == 1 or sum(n * m for n, m in map(self.shapes.__getitem__, factors)) < n_rows * n_columns:
            return factors
        if self._product is None:
            self._product = factors[-1]
            for S in reversed(factors[:-1]):
                self._product = self.node("MatMul", [S, self._product])
        return [self._product]

    def file(self, n_columns: int, opset: int) -> bytes:
        """The graph as the bytes of a file."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        size = sum(len(constant.raw_data) for constant in self.constants)
        if size > _MOST_BYTES:
            raise ValueError(f"An ONNX file has at most {_MOST_BYTES / 1e9:g} GB, but the centroids take {size} bytes.")
        graph = helper.make_graph(
            self.nodes,
            "quickmeans",
            [helper.make_tensor_value_info("X", kind, ["n_rows", n_columns])],
            [
                helper.make_tensor_value_info("labels", types.INT64, ["n_rows"]),
                helper.make_tensor_value_info("distances", kind, ["n_rows"]),
            ],
            self.constants,
            doc_string="The nearest centroid of every row of X, and the distance from it.",
        )
        operators = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph,
            opset_imports=operators,
            ir_version=helper.find_min_ir_version_for(operators),
            producer_name="quickmeans",
            producer_version=version("quickmeans"),
        )
        self.onnx.checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data
