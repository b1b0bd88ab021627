"""Mathematical invariants as functions, for the tests of this library and for tests of its users."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_adjoint", "check_descent", "check_projection"]


def check_adjoint(op: Any, *, rtol: float | None = None, n_trials: int = 5, random_state: int = 0) -> None:
    r"""Check that ``op.T`` is the adjoint of ``op``: :math:`\langle V x, y\rangle = \langle x, V' y\rangle`.

    Parameters
    ----------
    op : LinearOperator
        A real linear operator with ``shape``, ``dtype``, ``@`` and ``T``.
    rtol : float, default=None
        The largest allowed difference, relative to the larger of :math:`\|V x\| \|y\|` and :math:`\|x\| \|V' y\|`; None
        stands for 100 units of rounding of its dtype.
    n_trials : int, default=5
        The number of pairs of random vectors to try.
    random_state : int, default=0
        The seed of the vectors.

    Raises
    ------
    AssertionError
        If the two sides differ by more; the message has both.
    """
    rng = np.random.default_rng(random_state)
    dtype = np.result_type(op.dtype, np.float32)
    rtol = 100 * float(np.finfo(dtype).eps) if rtol is None else rtol
    for _ in range(n_trials):
        x, y = (rng.standard_normal(n).astype(dtype) for n in (op.shape[1], op.shape[0]))
        Vx, Vty = (op @ x).astype(np.float64), (op.T @ y).astype(np.float64)
        left, right = float(Vx @ y), float(x @ Vty)
        scale = max(np.linalg.norm(Vx) * np.linalg.norm(y), np.linalg.norm(x) * np.linalg.norm(Vty))
        if not abs(left - right) <= rtol * scale:
            raise AssertionError(f"<Vx, y> = {left!r}, but <x, V'y> = {right!r}: op.T is not the adjoint of op.")


def check_descent(history: ArrayLike, *, rtol: float = 1e-9) -> None:
    """Check that an objective never rises.

    Parameters
    ----------
    history : sequence of float
        The values of the objective in order.
    rtol : float, default=1e-9
        The rise allowed for rounding errors, relative to the first value.

    Raises
    ------
    AssertionError
        If a value is not finite, is negative, or exceeds the one before; the message says in which step.
    """
    values = np.asarray(history, np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise AssertionError(f"The objective must be finite and not negative, got {values}.")
    rises = np.flatnonzero(np.diff(values) > rtol * values[0])
    if rises.size:
        i = int(rises[0])
        raise AssertionError(f"The objective rises from {values[i]!r} to {values[i + 1]!r} in step {i + 1}.")


def check_projection(
    projection: Any, M: NDArray[np.float64], *, exact: bool = True, n_trials: int = 200, random_state: int = 0
) -> None:
    """Check a projection: repeating ``projection.project`` changes nothing, and no point of the set is nearer.

    Parameters
    ----------
    projection : Projection
        An object with a ``project`` method.
    M : array
        The matrix to project.
    exact : bool, default=True
        Whether the projection should find the nearest point; if not, only the repetition is checked.
    n_trials : int, default=200
        The number of points of the set to try: projections of random matrices, and of M plus noise.
    random_state : int, default=0
        The seed of the random matrices.

    Raises
    ------
    AssertionError
        If the projection moves its own result, or if another point of the set is nearer to M.
    """
    rng = np.random.default_rng(random_state)
    nearest = projection.project(M)
    if not np.allclose(projection.project(nearest), nearest, rtol=1e-12, atol=0):
        raise AssertionError("Projecting a second time changes the result.")
    distance = np.linalg.norm(M - nearest)
    for i in range(n_trials if exact else 0):
        noise = rng.standard_normal(M.shape)
        other = projection.project(noise if i % 2 else M + rng.uniform(0, 1) * noise)
        if np.linalg.norm(M - other) < distance * (1 - 1e-12):
            raise AssertionError(
                f"A point of the set is at {np.linalg.norm(M - other)!r}, the projection at {distance!r}."
            )
