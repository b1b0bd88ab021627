"""How well and how fast centroids are factored: objective against non-zeros.

    QUICKMEANS_DATA=... python -m benchmarks.factorization

The ratio is that of the k-means objective with factored centroids, labels unchanged, to the one with exact centroids:
1 + sum n_k |u_k - v_k|^2 / objective. Prints a table and writes benchmarks/results/factorization.json.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.data import centroids, rows
from benchmarks.harness import machine, save
from quickmeans.transform import palm4msa, sparse_als

CASES = {
    "mnist": {30: (1900, 4700, 9400), 256: (5600, 11200, 16600, 25000), 1024: (20000, 35000, 70000)},
    "fashion-mnist": {256: (5600, 11200, 16600, 25000)},
    "words": {512: (10000, 20000, 30720)},
    "blobs": {128: (10240, 20480), 512: (40960,)},
}
PALM = {("mnist", 30): (4, 5, 3000), ("mnist", 256): (8, 5, 300)}  # factors, sparsity level, sweeps


def svd_error(U, n, budget):
    """The weighted error of a truncated SVD whose two dense factors have at most `budget` entries."""
    s = np.linalg.svd(np.sqrt(n)[:, None] * U, compute_uv=False)
    return float((s[budget // sum(U.shape) :] ** 2).sum())


def threshold_error(U, n, budget):
    """The weighted error of U with all but the `budget` entries of largest n_k u^2 set to zero."""
    return float(np.sort((n[:, None] * U**2).ravel())[:-budget].sum())


def timed(call):
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


def case(name, X, K, budgets):
    U, n, objective = centroids(X, K)
    U, n = U.astype(np.float64), n.astype(np.float64)
    records = []

    def record(method, nnz, error, seconds=None, **more):
        records.append({"data": name, "K": K, "D": U.shape[1], "method": method, "nnz": nnz} | more
                       | {"ratio": 1 + error / objective, "seconds": seconds,
                          "relative_error": (error / float((n[:, None] * U**2).sum())) ** 0.5})  # fmt: skip

    for budget in budgets:
        found, seconds = timed(lambda budget=budget: sparse_als(U, U.size / budget, weights=n))
        record("sparse ALS", found.product.nnz, found.history[-1], seconds)
        warm, seconds = timed(
            lambda p=found.product, b=budget: sparse_als(U, U.size / b, weights=n, init=p, max_iter=0)
        )
        record("sparse ALS, refit", warm.product.nnz, warm.history[-1], seconds)
        record("truncated SVD", budget, svd_error(U, n, budget))
        record("thresholded U", budget, threshold_error(U, n, budget))
    if (name, K) in PALM:
        Q, k, sweeps = PALM[name, K]
        start = time.perf_counter()
        found = palm4msa(U, Q, k, weights=n, max_iter=sweeps)
        seconds = time.perf_counter() - start
        record(
            "palm4MSA",
            found.product.nnz,
            found.history[-1],
            seconds,
            n_factors=Q,
            sparsity_level=k,
            sweeps=found.n_iter,
        )
    return records


def main():
    console = Console(width=120)
    records = []
    for name, sizes in CASES.items():
        X = rows(name)
        for K, budgets in sizes.items():
            records += case(name, X, K, budgets)
            console.print(f"{name}, K = {K} done")
    table = Table(title="Objective with factored centroids over that with exact ones")
    for column in ("data", "K", "method", "non-zeros", "of dense", "ratio", "relative error", "seconds"):
        table.add_column(column, justify="left" if column in ("data", "method") else "right")
    for r in records:
        share, seconds = r["nnz"] / (r["K"] * r["D"]), r["seconds"]
        table.add_row(r["data"], str(r["K"]), r["method"], str(r["nnz"]), f"{share:.1%}", f"{r['ratio']:.4f}",
                      f"{r['relative_error']:.4f}", "" if seconds is None else f"{seconds:.2f}")  # fmt: skip
    console.print(table)
    console.print(f"Results are in {save('factorization', {'machine': machine('scikit-learn'), 'records': records})}")


if __name__ == "__main__":
    main()
