"""Inverted lists by faiss.

faiss keeps the rows and computes the distances. The caller decides which list a row is added to and which lists are
searched. The lists are an ordinary faiss index, which has the centroids in a flat quantizer.
"""

import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.search.input import Input
from quickmeans.threads import forget_libraries

Lists = Any  # a faiss.IndexIVF

PAYLOADS = "'flat', 'sq8', or 'pq' with the number of parts, such as 'pq16' or 'pq16x4'"
_PQ = re.compile(r"pq(\d+)(?:x(\d+))?")
_TRAINING_ROWS = 1 << 17  # of a source: twice as many as faiss uses for codes of eight bits
_ROWS_PER_CODE = 39  # faiss's min_points_per_centroid: it warns about fewer training rows per code


def faiss_library() -> ModuleType:
    """The module faiss, or an error that says how to install it."""
    try:
        if "faiss" not in sys.modules:
            forget_libraries()  # faiss loads a BLAS of its own
        import faiss
    except ImportError:
        raise ImportError(
            "Nearest-neighbour search keeps its rows with faiss, which is not installed: "
            "pip install 'quickmeans[search]'."
        ) from None
    return faiss


def check_payload(payload: Any, n_features: int | None = None) -> None:
    """Refuse a payload that does not exist, or that rows with so many features cannot have."""
    if payload in ("flat", "sq8"):
        return
    parts = _PQ.fullmatch(payload) if isinstance(payload, str) else None
    if parts is None:
        raise ValueError(f"payload must be {PAYLOADS}, got {payload!r}.")
    n_parts, n_bits = int(parts[1]), int(parts[2] or 8)
    if not (n_parts >= 1 and 1 <= n_bits <= 12):
        raise ValueError(f"payload {payload!r} must have at least one part, of 1 to 12 bits.")
    if n_features is not None and n_features % n_parts:
        raise ValueError(f"payload {payload!r} must cut {n_features} features into equal parts.")


def build_lists(
    centers: NDArray[Any], payload: str, similarity: bool, rows: Input, labels: NDArray[Any], rng: np.random.Generator
) -> Lists:
    """Lists of these rows, by their labels, with row numbers as ids."""
    lists = make_lists(centers, payload, similarity)
    train_codes(lists, _training_rows(lists, rows, rng))
    for place, block in rows.blocks():
        add_rows(lists, block, labels[place], np.arange(place.start, place.stop))
    return lists


def _training_rows(lists: Lists, rows: Input, rng: np.random.Generator) -> NDArray[np.float32]:
    """All rows if they are in memory, else a sample."""
    place, block = next(rows.blocks())
    n_rows = rows.shape[0]
    if place == slice(0, n_rows):
        return block
    if isinstance(lists, faiss_library().IndexIVFFlat):
        return block[:1]  # nothing is trained
    return rows.take(np.sort(rng.choice(n_rows, min(n_rows, _TRAINING_ROWS), replace=False)))


def make_lists(centers: NDArray[Any], payload: str, similarity: bool) -> Lists:
    """One empty list per centroid; rows are compared by inner products if `similarity`, else by distances."""
    faiss = faiss_library()
    K, D = centers.shape
    metric = faiss.METRIC_INNER_PRODUCT if similarity else faiss.METRIC_L2
    quantizer = faiss.IndexFlat(D, metric)
    quantizer.add(np.ascontiguousarray(centers, np.float32))
    if payload == "flat":
        lists = faiss.IndexIVFFlat(quantizer, D, K, metric)
    elif payload == "sq8":
        lists = faiss.IndexIVFScalarQuantizer(quantizer, D, K, faiss.ScalarQuantizer.QT_8bit, metric)
    else:
        parts = _PQ.fullmatch(payload)
        assert parts is not None
        lists = faiss.IndexIVFPQ(quantizer, D, K, int(parts[1]), int(parts[2] or 8), metric)
    lists.own_fields = True  # the lists free the quantizer, and Python does not
    quantizer.this.disown()
    return lists


def train_codes(lists: Lists, rows: NDArray[np.float32]) -> None:
    """Train the codes of payloads other than "flat"."""
    faiss = faiss_library()
    if isinstance(lists, faiss.IndexIVFPQ):
        n_codes = 2**lists.pq.nbits
        if len(rows) < n_codes:
            raise ValueError(f"A payload of {n_codes} codes needs at least as many rows, got {len(rows)}.")
        lists.pq.cp.min_points_per_centroid = min(_ROWS_PER_CODE, len(rows) // n_codes)
    lists.train(rows)


def add_rows(lists: Lists, rows: NDArray[np.float32], labels: NDArray[Any], ids: NDArray[np.int64]) -> None:
    """Add every row to the list that its label names."""
    pointer = faiss_library().swig_ptr
    labels, ids = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(ids, np.int64)
    lists.add_core(len(rows), pointer(rows), pointer(ids), pointer(labels))


def coarse_scores(lists: Lists, queries: NDArray[np.float32], at: NDArray[np.int64]) -> NDArray[np.float32]:
    """Squared distances or inner products between queries and the centroids of their lists.

    Codes need them, being relative to the centroid; for the payload "flat" they are zeros.
    """
    faiss = faiss_library()
    scores = np.zeros(at.shape, np.float32)
    if not isinstance(lists, faiss.IndexIVFFlat):
        n, m = at.shape
        pointers = map(faiss.swig_ptr, (scores, at))
        faiss.downcast_index(lists.quantizer).compute_distance_subset(n, faiss.swig_ptr(queries), m, *pointers)
    return scores


def remove_rows(lists: Lists, ids: NDArray[np.int64]) -> None:
    """Remove the rows with these ids, which must be in the lists."""
    lists.remove_ids(faiss_library().IDSelectorBatch(np.ascontiguousarray(ids, np.int64)))


def list_sizes(lists: Lists) -> NDArray[np.int64]:
    """How many rows each list has."""
    return np.array([lists.invlists.list_size(k) for k in range(lists.nlist)], np.int64)


def exported(lists: Lists, nprobe: int, ids: NDArray[np.int64] | None, *, normalize: bool) -> Any:
    """A copy as a faiss index that searches `nprobe` lists; with `normalize` it first divides rows by their lengths.

    Rows have the given ids, by row number, in place of their numbers.
    """
    faiss = faiss_library()
    index = faiss.clone_index(lists)
    index.nprobe = nprobe
    if ids is not None:
        for label in range(lists.nlist):
            numbers = faiss.rev_swig_ptr(index.invlists.get_ids(label), index.invlists.list_size(label))
            numbers[:] = ids[numbers]
    return faiss.IndexPreTransform(faiss.NormalizationTransform(lists.d, 2.0), index) if normalize else index
