"""Invariants of the mathematics as functions, for our tests and for yours."""

from typing import Any

import numpy as np

__all__ = ["check_adjoint"]


def check_adjoint(op: Any, *, rtol: float | None = None, n_trials: int = 5, random_state: int = 0) -> None:
    r"""Check that ``op.T`` is the adjoint of ``op``: :math:`\langle V x, y\rangle = \langle x, V' y\rangle`.

    Parameters
    ----------
    op : LinearOperator
        A real linear operator with ``shape``, ``dtype``, ``@`` and ``T``.
    rtol : float, optional
        The difference allowed, as a share of :math:`\|V x\| \|y\|`; by default 100 units of rounding of its dtype.
    n_trials : int
        How many pairs of random vectors to try.
    random_state : int
        Seed of the vectors.

    Raises
    ------
    AssertionError
        If the two sides differ by more, with both in the message.
    """
    rng = np.random.default_rng(random_state)
    rtol = 100 * float(np.finfo(op.dtype).eps) if rtol is None else rtol
    for _ in range(n_trials):
        x = rng.standard_normal(op.shape[1]).astype(op.dtype)
        y = rng.standard_normal(op.shape[0]).astype(op.dtype)
        Vx = (op @ x).astype(np.float64)
        left, right = float(Vx @ y), float(x @ (op.T @ y).astype(np.float64))
        scale = float(np.linalg.norm(Vx) * np.linalg.norm(y))
        if not abs(left - right) <= rtol * scale:
            raise AssertionError(f"<Vx, y> = {left!r}, but <x, V'y> = {right!r}: op.T is not the adjoint of op.")
