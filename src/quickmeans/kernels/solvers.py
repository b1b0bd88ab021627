"""The inner loops of the solvers."""

import numpy as np
from numpy.typing import NDArray

from quickmeans import _native
from quickmeans.kernels.arrays import UINT8, Floats, Ints, floats, ints, packed, writable
from quickmeans.threads import instruction_set


def fit_supports(
    gram: Floats,
    targets: Floats,
    weights: Floats,
    drop: Ints,
    support: NDArray[np.uint8],
    n_threads: int,
    *,
    prices: bool,
) -> tuple[Floats, Floats | None]:
    """For every row the least-squares coefficients on its support, after removing the ``drop`` cheapest entries.

    ``support`` is changed. The prices, if wanted, are what the removal of an entry would add to the objective, times
    the row's weight, and infinite outside the support.
    """
    mask = writable(support, "support", UINT8)
    values, priced = np.empty(targets.shape), np.empty(targets.shape) if prices else None
    problem = floats(gram), floats(targets), floats(weights), ints(drop)
    _native.fit_supports(*problem, mask, values, priced, n_threads, instruction_set())
    return values, priced


def masked_product(rows: Floats, atoms: Floats, support: NDArray[np.uint8], n_threads: int) -> Floats:
    """``rows @ atoms`` on the support, and zero elsewhere; it skips the zeros of the atoms."""
    out = np.empty(support.shape)
    _native.masked_product(floats(rows), floats(atoms), packed(support, UINT8), out, n_threads)
    return out


class Entries:
    """The non-zeros of a matrix. If there are more than ``most``, they can only be counted, and not all are."""

    __slots__ = ("_native", "shape")

    def __init__(self, S: Floats, most: int) -> None:
        self.shape = S.shape
        self._native = _native.Entries(floats(S), most, instruction_set())

    def __len__(self) -> int:
        return len(self._native)

    def norm(self) -> float:
        """The Frobenius norm."""
        return self._native.norm()

    def scaled(self, c: float) -> "Entries":
        """The entries times c."""
        other = object.__new__(Entries)
        other.shape, other._native = self.shape, self._native.scaled(c)
        return other

    def put(self, out: Floats) -> None:
        """Write the entries to their places in ``out``."""
        self._native.put(writable(out, "out"))

    def times(self, X: Floats, *, transposed: bool = False) -> Floats:
        """S X, or S' X."""
        out = np.empty((self.shape[1 if transposed else 0], X.shape[1]))
        self._native.times(floats(X), out, transposed)
        return out

    def refine(
        self,
        P: Floats | None,
        diagonal: Floats,
        G: Floats | None,
        M: Floats,
        row_curvature: Floats,
        column_curvature: Floats,
        n_steps: int,
    ) -> tuple[float, float]:
        """Steps of conjugate gradients for <S, P S G> - 2 <M, S> on the support; returns <M, S> and <S, P S G>.

        None stands for a P that is the diagonal, and for a G that is the identity. The second derivative along entry
        (i, j) is the product of the curvatures of row i and column j.
        """
        form = floats(P), floats(diagonal), floats(G), floats(M)
        return self._native.refine(*form, floats(row_curvature), floats(column_curvature), n_steps)
