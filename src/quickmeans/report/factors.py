"""The positions of the non-zeros of the factors."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.report.png import data_uri, tinted
from quickmeans.transform import SparseProduct

_MOST_PIXELS = 200  # of a side
_LONGEST, _SHORTEST, _TOGETHER = 19.0, 2.0, 54.0  # sides of the drawn matrices and sum of their widths, in em


def factor_patterns(product: SparseProduct) -> tuple[str, str]:
    """Return the dense matrix and its factors drawn to scale, and a caption."""
    K, D = product.shape
    longest = max(max(S.shape) for S in product.factors)
    scale = min(
        _LONGEST / longest, max(_LONGEST / 2 / longest, _TOGETHER / (D + sum(S.shape[1] for S in product.factors)))
    )
    items = [_matrix(np.full((1, 1), 0.45), (K, D), scale, "V", f"{K * D:,} numbers")]
    for q, S in enumerate(product.factors, 1):
        nnz = S.nnz if sp.issparse(S) else int(np.count_nonzero(S))
        share = nnz / (S.shape[0] * S.shape[1])
        sign = "=" if q == 1 else "·"
        items.append(f'<li class="sign" aria-hidden="true">{sign}</li>')
        counted = f"{nnz:,} non-zeros, {100 * share:.2g} %" if share < 1 else f"{nnz:,} numbers, dense"
        items.append(_matrix(density(S), S.shape, scale, f"S<sub>{q}</sub>", counted))
    fewer = f", {K * D / product.nnz:.1f} times fewer" if 0 < product.nnz < K * D else ""
    note = (
        f"{product.nnz:,} numbers instead of {K * D:,}{fewer}. "
        "Stronger colour means more non-zeros. Sides are to scale, but very short ones are drawn longer."
    )
    return f'<ul class="matrices">{"".join(items)}</ul>', note


def density(S: Any) -> NDArray[np.float64]:
    """Return an image of the matrix: the share of non-zeros in every pixel, over the largest share."""
    height, width = (min(n, _MOST_PIXELS) for n in S.shape)
    rows, columns = S.nonzero()
    at = (rows.astype(np.int64) * height // S.shape[0]) * width + columns.astype(np.int64) * width // S.shape[1]
    counts = np.bincount(at, minlength=height * width).reshape(height, width).astype(np.float64)
    cells = [np.bincount(np.arange(n) * m // n) for n, m in zip(S.shape, (height, width), strict=True)]
    shares = counts / np.outer(*cells)
    return np.asarray(shares / (shares.max() or 1))


def _matrix(shares: NDArray[np.float64], shape: tuple[int, int], scale: float, name: str, counted: str) -> str:
    height, width = (max(_SHORTEST, scale * n) for n in shape)
    plain = name.replace("<sub>", "").replace("</sub>", "")
    return (
        f'<li><img class="pixels" src="{data_uri(tinted(-np.sqrt(shares)))}" alt="{plain}: {counted}" '
        f'style="width:{width:.2f}em;height:{height:.2f}em">'
        f"<span><var>{name}</var> {shape[0]:,} &times; {shape[1]:,}</span>"
        f"<small>{counted}</small></li>"
    )
