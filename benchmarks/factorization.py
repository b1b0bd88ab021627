"""How well and how fast centroids are factored: objective against multiply-adds, and how the time grows.

    QUICKMEANS_DATA=... python -m benchmarks.factorization           measure
    python -m benchmarks.factorization --plot                        draw docs/frontier.png from the last results

The ratio is that of the k-means objective with factored centroids, labels unchanged, to the one with exact centroids:
1 + sum n_k |u_k - v_k|^2 / objective. Prints tables and writes benchmarks/results/factorization.json.
"""

import json
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import peers
from benchmarks.data import centroids, rows
from benchmarks.harness import RESULTS, machine, save
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

# Shapes and compressions; the number of non-zeros grows with K and D, and in the last line alone.
GROWTH = {
    "K": [(K, 512, 20) for K in (128, 256, 512, 1024, 2048, 4096)],
    "D": [(512, D, 20) for D in (128, 256, 512, 1024, 2048)],
    "nnz": [(1024, 512, compression) for compression in (80, 40, 20, 10)],
}


def timed(call, repeats=2):
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return result, best


class Case:
    """The centroids of one data set, and the records of everything that factors them."""

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
        found, seconds = timed(lambda: sparse_als(U, compression, weights=n))
        self.record("sparse ALS", found.product.macs, found.history[-1], seconds)
        if len(found.product.factors) == 2:
            warm, seconds = timed(lambda: sparse_als(U, compression, weights=n, init=found.product, max_iter=0), 5)
            self.record("sparse ALS, refit", warm.product.macs, warm.history[-1], seconds)
        for method, label in CLOSED.items():
            try:
                found, seconds = timed(lambda m=method: factorize(U, m, compression, weights=n))
                self.record(label, found.product.macs, found.history[-1], seconds)
            except ValueError as why:
                self.skip(label, str(why))

    def at_sparsity_levels(self):
        key = self.name, len(self.U)
        if key in PALM:
            Q, k, sweeps = PALM[key]
            found, seconds = timed(lambda: hierarchical_palm4msa(self.U, Q, k, weights=self.n), 1)
            self.record("hierarchical", found.product.macs, found.history[-1], seconds, n_factors=Q, sparsity_level=k)
            found, seconds = timed(lambda: palm4msa(self.U, Q, k, weights=self.n, max_iter=sweeps), 1)
            details = {"n_factors": Q, "sparsity_level": k, "sweeps": found.n_iter}
            self.record("palm4MSA", found.product.macs, found.history[-1], seconds, **details)
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
        """Peers know no weights: they factor N^(1/2) U, and scaling the rows of their first factor back is free."""
        A = np.sqrt(self.n)[:, None] * self.U
        try:
            (V, macs), seconds = timed(lambda: call(A), 1)
        except Exception as why:
            self.skip(method, f"{type(why).__name__}: {why}")
        else:
            self.record(method, macs, float(np.square(A - V).sum()), seconds, **details)


def growth():
    """Seconds of sparse ALS for matrices of low rank plus sparse entries plus noise, and slopes in log-log."""
    result = {}
    for what, shapes in GROWTH.items():
        points = []
        for K, D, compression in shapes:
            U = _low_rank_plus_sparse(K, D)
            _, seconds = timed(lambda U=U, c=compression: sparse_als(U, c))
            points.append({"K": K, "D": D, "nnz": int(K * D / compression), "seconds": seconds})
        logs = np.log([[point[what], point["seconds"]] for point in points])
        result[what] = {"points": points, "slope": float(np.polyfit(*logs.T, 1)[0])}
    return result


def _low_rank_plus_sparse(K, D, rank=32):
    rng = np.random.default_rng(0)
    U = rng.standard_normal((K, rank)) @ rng.standard_normal((rank, D)) / rank**0.5
    return U + 3 * rng.standard_normal((K, D)) * (rng.random((K, D)) < 0.02) + 0.1 * rng.standard_normal((K, D))


def plot(console):
    """Error against multiply-adds, one panel per set of centroids."""
    from benchmarks.frontier import draw

    console.print(f"The plot is in {draw(json.loads((RESULTS / 'factorization.json').read_text())['records'])}")


def print_records(console, records):
    table = Table(title="Objective with factored centroids over that with exact ones")
    for column in ("data", "K", "method", "multiply-adds", "of dense", "ratio", "relative error", "seconds"):
        table.add_column(column, justify="left" if column in ("data", "method") else "right")
    for r in records:
        if "skipped" in r:
            table.add_row(r["data"], str(r["K"]), r["method"], "does not fit", "", "", "", "")
            continue
        table.add_row(r["data"], str(r["K"]), r["method"], str(r["macs"]), f"{r['macs'] / (r['K'] * r['D']):.1%}",
                      f"{r['ratio']:.4f}", f"{r['relative_error']:.4f}", f"{r['seconds']:.3f}")  # fmt: skip
    console.print(table)


def print_growth(console, found):
    for what, part in found.items():
        points = ", ".join(f"{point[what]}: {point['seconds']:.2f} s" for point in part["points"])
        console.print(f"Growth with {what}: {points}; slope {part['slope']:.2f}")


def main():
    console = Console(width=120)
    if "--plot" in sys.argv[1:]:
        plot(console)
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
    found = growth()
    print_records(console, records)
    print_growth(console, found)
    content = {"machine": machine("scikit-learn", "pyfaust"), "records": records, "growth": found}
    console.print(f"Results are in {save('factorization', content)}")


if __name__ == "__main__":
    main()
