"""The constants of the solvers: what half and twice their values do to the error and to the time.

    QUICKMEANS_DATA=... python -m benchmarks.solver_constants

Every solver runs on centroids of MNIST and of word vectors with each of its constants at three values. Printed are the
objective and the seconds relative to those of the present value, as means over the matrices. Two further constants
choose between a sparse and a dense way to compute a product; for them the ratio of the seconds is printed for several
shapes.
"""

from functools import partial
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.data import centroids, rows
from benchmarks.harness import alternate
from quickmeans import kernels
from quickmeans.threads import with_one_blas_thread
from quickmeans.transform import als, chain, hierarchical_palm4msa, pair, palm, palm4msa, sparse_als

SIZE = 128  # centroids, of 10000 rows
VALUES = {
    (als, "_GROWTH"): (0.3, 0.6, 1.2),
    (als, "_KEEP"): (0.8, 0.9, 0.95),
    (als, "_BANDS"): ((4.0, np.inf), (8.0, np.inf), (16.0, np.inf)),
    (als, "_TRIAL"): (1, 3, 6),
    (als, "_REFITS"): (1, 3, 6),
    (pair, "_WHOLE"): (0.25, 0.5, 1.0),
    (chain, "_STEPS"): (5, 10, 20),
    (palm, "_SHORTEST"): (0.05, 0.1, 0.2),
    (palm, "_LONGEST_PAUSE"): (3, 7, 15),
    (palm, "_REFINEMENTS"): (1, 3, 6),
}


def refitted(U, n):
    start = sparse_als(U, 10, weights=n, max_iter=1).product
    return sparse_als(1.05 * U + 0.05 * U[::-1], 10, weights=n, init=start, max_iter=0)


def solvers(module, name):
    """The calls in which a constant matters."""
    if module is palm:
        yield lambda U, n: palm4msa(U, 4, 5, weights=n, max_iter=100)
        yield lambda U, n: hierarchical_palm4msa(U, 4, 5, weights=n)
    elif module is chain:
        yield lambda U, n: sparse_als(U, 10, weights=n, n_factors=3, init="svd")
    elif name == "_REFITS":
        yield refitted
    else:
        yield lambda U, n: sparse_als(U, 10, weights=n)
        yield lambda U, n: sparse_als(U, 25, weights=n)


def measure(module, name, values, matrices):
    """Objective and seconds of every value, relative to the middle one."""
    ratios = []
    for solve in solvers(module, name):
        for U, n in matrices:
            results = {}

            def call(value, solve=solve, U=U, n=n, results=results):
                with patch.object(module, name, value):
                    results[value] = solve(U, n).history[-1]

            seconds = alternate({str(value): lambda value=value: call(value) for value in values}, rounds=2)
            middle = results[values[1]], seconds[str(values[1])]
            ratios.append([[results[v] / middle[0], seconds[str(v)] / middle[1]] for v in values])
    return np.mean(ratios, axis=0)


@with_one_blas_thread
def gather(share):
    """Seconds per multiply-add of the masked product over those of a dense product."""
    ratios, rng = [], np.random.default_rng(0)
    for n, m, r in ((256, 784, 64), (512, 300, 128)):
        U, atoms = rng.standard_normal((n, m)), rng.standard_normal((m, r)) * (rng.random((m, r)) < share)
        support, out = (rng.random((n, r)) < share).astype(np.uint8), np.empty((n, r))
        masked = partial(kernels.masked_product, U, atoms, support, out, 1)
        times = alternate({"masked": masked, "dense": partial(np.matmul, U, atoms)}, rounds=30)
        gathered = np.count_nonzero(support) * np.count_nonzero(atoms) / r
        ratios.append((times["masked"] / gathered) / (times["dense"] / (n * m * r)))
    return ratios


def main():
    rng, matrices = np.random.default_rng(0), []
    for name in ("mnist", "words"):
        X = rows(name)
        U, n, _ = centroids(X[rng.choice(len(X), 10000, replace=False)], SIZE)
        matrices.append((U.astype(np.float64), n + 1.0))
    table = Table("constant", "value", "objective", "seconds")
    for (module, name), values in VALUES.items():
        for value, ratio in zip(values, measure(module, name, values, matrices), strict=True):
            table.add_row(f"{module.__name__.rpartition('.')[2]}.{name}", str(value), *(f"{r:.3f}" for r in ratio))
    table.add_row("pair._GATHER", "share 0.3", "", " ".join(f"{ratio:.1f}" for ratio in gather(0.3)))
    Console().print(table)


if __name__ == "__main__":
    main()
