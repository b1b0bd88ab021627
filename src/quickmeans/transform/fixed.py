r"""Fixed fast transforms as products of sparse factors.

All of them are orthonormal, :math:`T T' = I`; ``T @ x`` transforms a vector.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from quickmeans.checks import check_whole
from quickmeans.transform.factors import LARGEST_SIDE
from quickmeans.transform.product import SparseProduct


def hadamard(n: int, dtype: DTypeLike = np.float64) -> SparseProduct:
    r"""The Walsh-Hadamard transform of order n, a power of two, in natural order.

    .. math:: H_n = \prod_{i=1}^{\log_2 n} I_{2^{i-1}} \otimes B \otimes I_{n/2^i}, \qquad
              B = \begin{pmatrix} 1 & 1 \\ 1 & -1 \end{pmatrix} / \sqrt 2

    Each of the log2(n) factors has two non-zeros per row.

    Parameters
    ----------
    n : int
        The order.
    dtype : float32 or float64, default=float64
        The dtype of the factors.

    Returns
    -------
    SparseProduct

    Examples
    --------
    >>> from quickmeans.transform import hadamard
    >>> hadamard(1024)
    SparseProduct(1024 x 1024, 10 factors, 20480 non-zeros, compression 51.2x, float64)
    """
    levels = _log2(n, "hadamard")
    butterfly = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    return _product(
        [_kron(sp.eye_array(2**i), butterfly, sp.eye_array(n // 2 ** (i + 1))) for i in range(levels)]
        or [sp.eye_array(1)],
        dtype,
    )


def haar(n: int, dtype: DTypeLike = np.float64) -> SparseProduct:
    r"""The Haar wavelet transform of order n, a power of two, coarsest coefficient first.

    Each level replaces pairs of neighbours by their averages, which go to the front, and their differences, which
    follow. The next level does the same to the averages:

    .. math:: W_n = \prod_{m = 2, 4, \ldots, n} \begin{pmatrix} A_m & \\ D_m & \\ & I_{n-m} \end{pmatrix}, \qquad
              A_m = I_{m/2} \otimes (1, 1)/\sqrt 2, \quad D_m = I_{m/2} \otimes (1, -1)/\sqrt 2

    Parameters
    ----------
    n : int
        The order.
    dtype : float32 or float64, default=float64
        The dtype of the factors.

    Returns
    -------
    SparseProduct
    """
    levels = _log2(n, "haar")
    factors = []
    for level in range(1, levels + 1):
        m = 2**level
        pairs = [sp.kron(sp.eye_array(m // 2), np.array([[1, sign]]) / np.sqrt(2)) for sign in (1, -1)]
        factors.append(sp.block_diag([sp.vstack(pairs), sp.eye_array(n - m)]))
    return _product(factors or [sp.eye_array(1)], dtype)


def dct(n: int, dtype: DTypeLike = np.float64) -> SparseProduct:
    r"""The orthonormal type-II discrete cosine transform of any order n.

    .. math:: C_n[k, j] = \sqrt{2/n}\, c_k \cos\frac{\pi (2 j + 1) k}{2 n}, \qquad c_0 = 1/\sqrt 2, \; c_k = 1

    While the order is even, factors with two non-zeros per row split it into halves. That makes about 3 n log2(n)
    non-zeros for a power of two. A part of odd order is dense.

    Parameters
    ----------
    n : int
        The order.
    dtype : float32 or float64, default=float64
        The dtype of the factors.

    Returns
    -------
    SparseProduct
    """
    return _product(_dct2_factors(_order(n)), dtype)


def _dct2_factors(n: int) -> list[Any]:
    r"""Return the factors of :math:`C_n`, the DCT-II.

    With :math:`u_j = (x_j + x_{n-1-j})/\sqrt 2` and :math:`w_j = (x_j - x_{n-1-j})/\sqrt 2` the even frequencies of
    :math:`C_n x` are :math:`C_{n/2} u` and the odd ones :math:`C^{IV}_{n/2} w`.
    """
    if n % 2 or n == 2:
        return [_dct2_matrix(n)]
    m = n // 2
    eye, mirror = sp.eye_array(m), sp.csr_array(np.eye(m)[::-1])
    butterfly = sp.block_array([[eye, mirror], [eye, -mirror]]) / np.sqrt(2)
    interleave = sp.csr_array((np.ones(n), (np.r_[0:n:2, 1:n:2], np.arange(n))))
    first, *rest = _side_by_side(_dct2_factors(m), _dct4_factors(m))
    return [interleave @ first, *rest, butterfly]


def _dct4_factors(n: int) -> list[Any]:
    r"""Return the factors of the DCT-IV.

    .. math:: C^{IV}_n[k, j] = \sqrt{2/n} \cos(\theta_j (2 k + 1)), \qquad \theta_j = \pi (2 j + 1) / 4 n

    The outputs 2k and 2k - 1 have the angles :math:`\alpha \pm \theta_j` with :math:`\alpha = \pi (2 j + 1) k / n`, so
    their sum and difference are a cosine and a sine transform. Entries j and n - 1 - j share them up to a rotation
    by :math:`\theta_j`, and the sine transform, read backwards, is a DCT-II of the entries with alternating signs. With
    :math:`p = C_m a,\ q = C_m b,\ m = n/2`:

    .. math::
        a_j &= x_j \cos\theta_j + x_{n-1-j} \sin\theta_j, \qquad
        b_j = (-1)^j (x_j \sin\theta_j - x_{n-1-j} \cos\theta_j) \\
        y_0 &= p_0, \quad y_{2k} = (p_k - q_{m-k})/\sqrt 2, \quad y_{2k-1} = (p_k + q_{m-k})/\sqrt 2, \quad
        y_{n-1} = q_0
    """
    if n % 2:
        odd = 2 * np.arange(n) + 1
        return [np.sqrt(2 / n) * np.cos(np.pi * np.outer(odd, odd) / (4 * n))]
    m = n // 2
    j = np.arange(m)
    cos, sin = np.cos(np.pi * (2 * j + 1) / (4 * n)), np.sin(np.pi * (2 * j + 1) / (4 * n))
    sign = (-1.0) ** j
    rotate = _entries(n, [(j, j, cos), (j, n - 1 - j, sin), (m + j, j, sign * sin), (m + j, n - 1 - j, -sign * cos)])
    k, half = np.arange(1, m), np.full(m - 1, np.sqrt(0.5))
    combine = _entries(
        n,
        [
            (np.array([0, n - 1]), np.array([0, m]), np.ones(2)),
            (2 * k, k, half),
            (2 * k, n - k, -half),
            (2 * k - 1, k, half),
            (2 * k - 1, n - k, half),
        ],
    )
    return [combine, *_side_by_side(_dct2_factors(m), _dct2_factors(m)), rotate]


def _side_by_side(a: list[Any], b: list[Any]) -> list[Any]:
    """Return the factors of the block-diagonal matrix of two square products; identities extend the shorter one."""
    depth = max(len(a), len(b))
    a, b = (part + [sp.eye_array(part[0].shape[0])] * (depth - len(part)) for part in (a, b))
    return [sp.block_diag([sp.coo_array(part) for part in pair], format="csr") for pair in zip(a, b, strict=True)]


def _entries(n: int, triples: list[tuple[Any, Any, Any]]) -> Any:
    rows, columns, values = (np.concatenate(part) for part in zip(*triples, strict=True))
    return sp.csr_array((values, (rows, columns)), shape=(n, n))


def _dct2_matrix(n: int) -> NDArray[np.float64]:
    k, j = np.ogrid[:n, :n]
    matrix: NDArray[np.float64] = np.sqrt(2 / n) * np.cos(np.pi * (2 * j + 1) * k / (2 * n))
    matrix[0] /= np.sqrt(2)
    return matrix


def _kron(a: Any, b: Any, c: Any) -> Any:
    return sp.kron(sp.kron(a, b), c)


def _product(factors: list[Any], dtype: DTypeLike) -> SparseProduct:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"dtype must be float32 or float64, got {kind}.")
    return SparseProduct([factor.astype(kind) for factor in factors])


def _log2(n: int, name: str) -> int:
    if _order(n) & (n - 1):
        raise ValueError(f"{name} needs an order that is a power of two, got {n!r}.")
    return int(n).bit_length() - 1


def _order(n: int) -> int:
    return check_whole("n", n, 1, most=LARGEST_SIDE)
