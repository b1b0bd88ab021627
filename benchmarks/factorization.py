"""Factorization of centroids: objective against multiply-adds, and growth of the time.

    QUICKMEANS_DATA=... python -m benchmarks.factorization           measure
    python -m benchmarks.factorization --plot                        draw docs/frontier.png from the last results

The ratio is the k-means objective with factored centroids over that with exact centroids, for the same labels:
1 + sum n_k |u_k - v_k|^2 / objective. Prints tables and writes benchmarks/results/factorization.json.
"""

import sys

import numpy as np
from rich.table import Table

from benchmarks import peers
from benchmarks.data import centroids, rows
from benchmarks.harness import console, load, machine, save, timed
from quickmeans.transform import factorize, hierarchical_palm4msa, palm4msa, sparse_als

CASES = {
    "mnist": {30: (1900, 4700, 9400), 256: (5600, 11200, 16600, 25000), 1024: (20000, 35000, 70000)},
    "fashion-mnist": {256: (5600, 11200, 16600, 25000)},
    "words": {512: (10000, 20000, 30720)},
    "blobs": {128: (10240, 20480), 512: (40960, 81920)},
    "patches": {512: (13107, 26214, 52428)},
}
CLOSED = {"svd": "truncated SVD", "threshold": "thresholded U", "dct": "coefficients over DCT"}
PALM = {("mnist", 30): (4, 5, 3000), ("mnist", 256): (8, 5, 300)}  # factors, sparsity level, sweeps
PYFAUST_PALM = {("mnist", 30): (4, 5, 300), ("mnist", 256): (3, 5, 50)}
PYFAUST_HIERARCHICAL = {("mnist", 256): (3, 5)}  # factors, sparsity level
PYFAUST_FDB = {("mnist", 256), ("fashion-mnist", 256), ("words", 512), ("patches", 512)}

# (K, D, compression): the number of non-zeros grows with K, with D, and alone
GROWTH = {
    "K": [(K, 512, 20) for K in (128, 256, 512, 1024, 2048, 4096)],
    "D": [(512, D, 20) for D in (128, 256, 512, 1024, 2048)],
    "nnz": [(1024, 512, compression) for compression in (80, 40, 20, 10)],
}


class Case:
    """The centroids of one data set, and a record for every method that factors them."""

    def __init__(self, name, X, K):
        U, n, self.objective = centroids(X, K)
        self.name, self.U, self.n = name, U.astype(np.float64), n.astype(np.float64)
        self.total = float((self.n[:, None] * self.U**2).sum())
        self.records = []

    def record(self, method, macs, error, seconds=None, **more):
        K, D = self.U.shape
        self.records.append(
            {"data": self.name, "K": K, "D": D, "method": method, "macs": macs, **more}
            | {"ratio": 1 + error / self.objective, "relative_error": (error / self.total) ** 0.5, "seconds": seconds}
        )

    def skip(self, method, why):
        K, D = self.U.shape
        self.records.append({"data": self.name, "K": K, "D": D, "method": method, "skipped": why})

    def at_budget(self, budget):
        U, n, compression = self.U, self.n, self.U.size / budget
        als, seconds = timed(lambda: sparse_als(U, compression, weights=n), rounds=1)
        self.record("sparse ALS", als.product.macs, als.history[-1], seconds)
        if len(als.product.factors) == 2:
            refit, seconds = timed(
                lambda: sparse_als(U, compression, weights=n, init=als.product, max_iter=0), rounds=4
            )
            self.record("sparse ALS, refit", refit.product.macs, refit.history[-1], seconds)
        for method, label in CLOSED.items():
            try:
                result, seconds = timed(lambda m=method: factorize(U, m, compression, weights=n), rounds=1)
                self.record(label, result.product.macs, result.history[-1], seconds)
            except ValueError as why:
                self.skip(label, str(why))

    def at_sparsity_levels(self):
        key = self.name, len(self.U)
        if key in PALM:
            Q, k, sweeps = PALM[key]
            result, seconds = timed(lambda: hierarchical_palm4msa(self.U, Q, k, weights=self.n), rounds=0)
            self.record("hierarchical", result.product.macs, result.history[-1], seconds, n_factors=Q, sparsity_level=k)
            result, seconds = timed(lambda: palm4msa(self.U, Q, k, weights=self.n, max_iter=sweeps), rounds=0)
            details = {"n_factors": Q, "sparsity_level": k, "sweeps": result.n_iter}
            self.record("palm4MSA", result.product.macs, result.history[-1], seconds, **details)
        if key in PYFAUST_PALM:
            Q, k, sweeps = PYFAUST_PALM[key]
            details = {"n_factors": Q, "sparsity_level": k, "sweeps": sweeps}
            self.peer("pyfaust palm4msa", lambda A: peers.palm4msa(A, Q, k, sweeps), details)
        if key in PYFAUST_HIERARCHICAL:
            Q, k = PYFAUST_HIERARCHICAL[key]
            details = {"n_factors": Q, "sparsity_level": k}
            self.peer("pyfaust hierarchical", lambda A: peers.hierarchical(A, Q, k), details)
        if key in PYFAUST_FDB:
            for rank in (1, 2):
                self.peer("pyfaust fdb", lambda A, rank=rank: peers.fdb(A, rank), {"n_factors": 4, "rank": rank})

    def peer(self, method, call, details):
        """Measure a method without weights: it factors N^(1/2) U; scaling the rows of its first factor back is free."""
        A = np.sqrt(self.n)[:, None] * self.U
        try:
            (V, macs), seconds = timed(lambda: call(A), rounds=0)
        except Exception as why:
            self.skip(method, f"{type(why).__name__}: {why}")
        else:
            self.record(method, macs, float(np.square(A - V).sum()), seconds, **details)


def growth():
    """Return seconds of sparse ALS on matrices of low rank plus sparse entries plus noise, and slopes in log-log."""
    result = {}
    for what, shapes in GROWTH.items():
        points = []
        for K, D, compression in shapes:
            U = _low_rank_plus_sparse(K, D)
            _, seconds = timed(lambda U=U, c=compression: sparse_als(U, c), rounds=1)
            points.append({"K": K, "D": D, "nnz": int(K * D / compression), "seconds": seconds})
        logs = np.log([[point[what], point["seconds"]] for point in points])
        result[what] = {"points": points, "slope": float(np.polyfit(*logs.T, 1)[0])}
    return result


def _low_rank_plus_sparse(K, D, rank=32):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((K, rank)) @ rng.standard_normal((rank, D)) / rank**0.5
    return U + 3 * rng.standard_normal((K, D)) * (rng.random((K, D)) < 0.02) + 0.1 * rng.standard_normal((K, D))


def print_records(records):
    table = Table(title="Objective with factored centroids over that with exact ones")
    for column in ("data", "K", "method", "multiply-adds", "of dense", "ratio", "relative error", "seconds"):
        table.add_column(column, justify="left" if column in ("data", "method") else "right")
    for r in records:
        if "skipped" in r:
            table.add_row(r["data"], str(r["K"]), r["method"], "failed", "", "", "", "")
            continue
        table.add_row(r["data"], str(r["K"]), r["method"], str(r["macs"]), f"{r['macs'] / (r['K'] * r['D']):.1%}",
                      f"{r['ratio']:.4f}", f"{r['relative_error']:.4f}", f"{r['seconds']:.3f}")  # fmt: skip
    console.print(table)


def print_growth(slopes):
    for what, part in slopes.items():
        points = ", ".join(f"{point[what]}: {point['seconds']:.2f} s" for point in part["points"])
        console.print(f"Growth with {what}: {points}; slope {part['slope']:.2f}")


def main():
    if "--plot" in sys.argv[1:]:
        from benchmarks.frontier import draw

        console.print(f"The plot is in {draw(load('factorization')['records'])}")
        return
    records = []
    for name, sizes in CASES.items():
        X = rows(name)
        for K, budgets in sizes.items():
            case = Case(name, X, K)
            for budget in budgets:
                case.at_budget(budget)
            case.at_sparsity_levels()
            records += case.records
            console.print(f"{name}, K = {K} done")
    slopes = growth()
    print_records(records)
    print_growth(slopes)
    content = {"machine": machine("scikit-learn", "pyfaust"), "records": records, "growth": slopes}
    console.print(f"Results are in {save('factorization', content)}")


if __name__ == "__main__":
    main()
