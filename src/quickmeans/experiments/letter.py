"""The paper's Algorithm 1 with its Algorithm 2 to the letter: raw rows, its sets, its steps, its order.

The first factorization, of the starting centroids, is hierarchical; the later ones start from the last factors.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.experiments.models import TOLERANCE, StopWhenSettled, model_path, n_iterations, start
from quickmeans.experiments.run import Run
from quickmeans.transform import SparseProduct, hierarchical_palm4msa, palm4msa

LETTER = "to the letter, sparsity {}"
_SWEEPS = 300


class Letter(NamedTuple):
    """The result: the rows of the product, the objective after every update, the number of non-zeros."""

    centers: NDArray[np.float32]
    labels: NDArray[np.int64]
    history: NDArray[np.float64]
    numbers: Any


def letter(run: Run, data: str, K: int, seed: int, level: int) -> Letter:
    """Return the result for a data set; a file keeps it."""
    path = model_path(run, data, K, LETTER.format(level), seed).with_suffix(".npz")
    if not path.exists():
        X = run.split(data).X
        result = to_the_letter(X, start(X, K, seed), level, n_iterations(data))
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, **result._asdict())
        unfinished.replace(path)
    with np.load(path) as file:
        return Letter(*(file[name] for name in Letter._fields))


def to_the_letter(X: NDArray[Any], U: NDArray[Any], sparsity_level: int, max_iter: int) -> Letter:
    """Run Algorithm 1 from the rows U."""
    palm: dict[str, Any] = {"steps": "paper", "lambda_update": "sweep", "max_iter": _SWEEPS, "tol": TOLERANCE}
    rows = X.astype(np.float64)
    U = U.astype(np.float64)
    V = hierarchical_palm4msa(U, "paper", sparsity_level, **palm).product  # line 1
    scatter, history, stop = float(np.vdot(rows, rows)), [], StopWhenSettled()
    for i in range(max_iter):  # line 2
        labels = _nearest(V, X)  # line 3
        members = sp.csr_array((np.ones(len(X)), (labels, np.arange(len(X)))), shape=(len(U), len(X)))
        n = np.bincount(labels, minlength=len(U)).astype(np.float64)
        sums = members @ rows
        U = np.where(n[:, None] > 0, sums / np.maximum(n, 1)[:, None], V.toarray())  # line 4
        V = palm4msa(U, "paper", sparsity_level, weights=n, init=V, **palm).product  # lines 5 to 8
        dense = V.toarray()
        history.append(scatter - 2 * float(np.vdot(sums, dense)) + float(n @ np.square(dense).sum(axis=1)))
        if stop(i, history[-1]):
            break
    return Letter(V.toarray().astype(np.float32), _nearest(V, X), np.array(history), V.nnz)


def _nearest(V: SparseProduct, X: NDArray[Any]) -> NDArray[np.int64]:
    single = SparseProduct([S.astype(np.float32) for S in V.factors])
    return np.asarray(single.nearest_row(X), np.int64)
