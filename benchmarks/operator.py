"""SparseProduct and its peers: the paper's Figure 1, nearest rows, single vectors.

    python -m benchmarks.operator [--quick]

It must run as a module: as a script it would hide the standard library's `operator`. Prints the tables and writes
benchmarks/results/operator.json. No other program should run meanwhile.
"""

import argparse
import functools
import sys

import faiss
import numpy as np
import pyfaust
import scipy.sparse as sp
import superkmeans
from rich.console import Console
from rich.table import Table

from benchmarks.harness import alternate, machine, save
from quickmeans import SparseProduct, kernels
from quickmeans.experiments.figure1 import regular_factor
from quickmeans.experiments.operators import scipy_chain
from quickmeans.experiments.peers import predictor

console = Console(width=None if sys.stdout.isatty() else 180)
SPARSITY_LEVELS = (2, 3, 5, 10)
ASSIGNMENTS = [(128, 2000, 29000), (512, 2000, 29000), (512, 384, 60000), (4096, 768, 10000), (65536, 128, 8000)]
SINGLE_VECTORS = [(512, 256), (362, 362), (256, 512), (2048, 64), (16384, 8), (128, 1024), (1024, 128), (1024, 1024),
                  (512, 2000), (2000, 512), (4096, 768), (65536, 128)]  # fmt: skip
# number of the assignment -> goals: times faster than scikit-learn, and time over that of X.sum()
GOALS = {0: (5, 0.8), 1: (6.5, 1.7), 2: (4.3, None), 3: (16, None), 4: (12, None)}


def projected_factor(shape, k, rng):
    """Return random entries that are among the k largest of their row or column, the paper's constraint."""
    M = rng.standard_normal(shape, dtype=np.float32) / k**0.5
    keep = np.zeros(shape, bool)
    for axis in (0, 1):
        largest = np.argpartition(-np.abs(M), min(k, shape[axis]) - 1, axis=axis)
        np.put_along_axis(keep, largest.take(np.arange(min(k, shape[axis])), axis), True, axis)
    return sp.csr_array(np.where(keep, M, 0))


def projected_chain(K, D, k, rng):
    """Return log2(A) factors of the paper's shapes, A = min(K, D)."""
    A = min(K, D)
    shapes = [(A, A)] * max(int(np.log2(A)) - 1, 0)
    shapes = [(K, A), *shapes] if K > D else [*shapes, (A, D)]
    return [projected_factor(shape, k, rng) for shape in shapes]


def figure_1(sizes, counts):
    """Time D x D operators of log2 D factors on sets of vectors."""
    rows = []
    for D in sizes:
        rng = np.random.default_rng(D)
        U = rng.standard_normal((D, D), dtype=np.float32)
        chains = {k: [regular_factor(D, k, rng) for _ in range(int(np.log2(D)))] for k in SPARSITY_LEVELS}
        for n in counts:
            M = rng.standard_normal((D, n), dtype=np.float32) if n > 1 else rng.standard_normal(D, dtype=np.float32)
            rows.append({"D": D, "vectors": n, **apply_to(M, U, chains)})
            console.print(f"Figure 1: D = {D}, {n} vectors done")
    return rows


def apply_to(M, U, chains):
    """Return the milliseconds of every way to apply the operators to M, and the difference from SciPy's result."""
    calls = {"numpy dense": lambda: U @ M}
    error = 0.0
    for k, chain in chains.items():
        V, faust = SparseProduct(chain), pyfaust.Faust([sp.csr_matrix(S) for S in chain])
        calls[f"quickmeans {k}"] = functools.partial(V.__matmul__, M)
        calls[f"scipy {k}"] = functools.partial(scipy_chain, chain, M)
        calls[f"pyfaust {k}"] = functools.partial(faust.__matmul__, np.asfortranarray(M))
        expected = scipy_chain(chain, M)
        error = max(error, float(np.abs(V @ M - expected).max() / np.abs(expected).max()))
    seconds = alternate(calls, rounds=9 if M.ndim == 1 or M.shape[1] <= 100 else 3)
    return {"milliseconds": {name: 1e3 * s for name, s in seconds.items()}, "error": error}


def gemm_argmin(X, U, half_norms):
    return (half_norms - X @ U.T).argmin(axis=1)


def assignment(K, D, N):
    """Time the nearest row of a product with sparsity level 5, and dense peers on the same shapes."""
    rng = np.random.default_rng(K + D)
    V = SparseProduct(projected_chain(K, D, 5, rng))
    U = V.toarray()
    dense = SparseProduct([U])
    X = rng.standard_normal((N, D), dtype=np.float32)
    flat = faiss.IndexFlatL2(D)
    flat.add(U)
    peer = superkmeans.SuperKMeans(K, D)
    model, half_norms = predictor(U), np.square(U, dtype=np.float64).sum(axis=1).astype(np.float32) / 2
    calls = {
        "quickmeans": lambda: V.nearest_row(X),
        "quickmeans, one thread": lambda: V.nearest_row(X, n_threads=1),
        "sklearn predict": lambda: model.predict(X),
        "BLAS + argmin": lambda: gemm_argmin(X, U, half_norms),
        "faiss IndexFlatL2": lambda: flat.search(X, 1),
        "SuperKMeans.assign": lambda: peer.assign(X, U),
        "X.sum()": lambda: X.sum(),
        "dense factor": lambda: dense.nearest_row(X),
        "BLAS": lambda: X @ U.T,
    }
    seconds = alternate(calls, rounds=5, most=12)
    console.print(f"Nearest row: K, D, N = {K}, {D}, {N} done")
    return {
        "K": K,
        "D": D,
        "N": N,
        "macs": V.macs,
        "share_of_dense": V.macs / (K * D),
        "equal_labels": float((V.nearest_row(X) == model.predict(X)).mean()),
        "milliseconds": {name: 1e3 * s for name, s in seconds.items()},
    }


def single_vector(K, D):
    """Time ``V @ x`` and ``U @ x`` for one vector."""
    rng = np.random.default_rng(0)
    V = SparseProduct(projected_chain(K, D, 5, rng))
    U, x = V.toarray(), rng.standard_normal(D, dtype=np.float32)
    X = x[None]
    calls = {"numpy U @ x": lambda: U @ x, "V @ x": lambda: V @ x, "V.nearest_row": lambda: V.nearest_row(X)}
    seconds = alternate(calls, rounds=200)
    return {"K": K, "D": D, "macs": V.macs, "microseconds": {name: 1e6 * s for name, s in seconds.items()}}


def print_figure_1(rows):
    for n in sorted({row["vectors"] for row in rows}):
        table = Table(title=f"Figure 1: D x D operator on {n} vector(s): times faster than numpy dense")
        table.add_column("D", justify="right")
        table.add_column("dense ms", justify="right")
        names = [name for name in rows[0]["milliseconds"] if name != "numpy dense"]
        for name in names:
            table.add_column(name, justify="right")
        for row in (row for row in rows if row["vectors"] == n):
            ms = row["milliseconds"]
            dense = ms["numpy dense"]
            table.add_row(str(row["D"]), f"{dense:.3f}", *(f"{dense / ms[name]:.2f}" for name in names))
        console.print(table)


def print_assignments(rows):
    table = Table(title="Nearest row, sparsity level 5: times faster than ...")
    peers = ["sklearn predict", "BLAS + argmin", "faiss IndexFlatL2", "SuperKMeans.assign"]
    for name in ["K, D, N", "ms", *peers, "goal", "over X.sum()", "goal", "dense factor / BLAS", "equal labels"]:
        table.add_column(name, justify="right")
    for i, row in enumerate(rows):
        ms, (faster, over) = row["milliseconds"], GOALS[i]
        table.add_row(
            f"{row['K']}, {row['D']}, {row['N']}",
            f"{ms['quickmeans']:.1f}",
            *(f"{ms[peer] / ms['quickmeans']:.1f}" for peer in peers),
            f">= {faster}",
            f"{ms['quickmeans'] / ms['X.sum()']:.2f}",
            f"<= {over}" if over else "",
            f"{ms['dense factor'] / ms['BLAS']:.2f}",
            f"{row['equal_labels']:.4f}",
        )
    console.print(table)


def print_single_vectors(rows):
    table = Table(title="One vector, microseconds")
    for name in ["K, D", "U @ x", "V @ x", "times faster", "V.nearest_row"]:
        table.add_column(name, justify="right")
    for row in rows:
        dense, fast, nearest = row["microseconds"].values()
        table.add_row(f"{row['K']}, {row['D']}", f"{dense:.1f}", f"{fast:.1f}", f"{dense / fast:.2f}", f"{nearest:.1f}")
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, nothing is saved")
    quick = parser.parse_args().quick
    result = {
        "machine": machine("scikit-learn", "faiss-cpu", "superkmeans", "pyfaust")
        | {"isa": kernels.instruction_sets()[0]},
        "single_vectors": [single_vector(*shape) for shape in SINGLE_VECTORS],
        "assignments": [assignment(*shape) for shape in ASSIGNMENTS[: 1 if quick else None]],
        "figure_1": figure_1([2**i for i in range(6, 9 if quick else 14)], [1, 100]),
    }
    print_single_vectors(result["single_vectors"])
    print_figure_1(result["figure_1"])
    print_assignments(result["assignments"])
    if not quick:
        console.print(f"Results are in {save('operator', result)}")


if __name__ == "__main__":
    main()
