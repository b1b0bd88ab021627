"""palm4MSA, hierarchical palm4MSA and those of pyfaust, on the same matrices with the same sets and sweeps.

    QUICKMEANS_DATA=... python -m benchmarks.palm

Seconds per sweep are the seconds of a call divided by its sweeps. pyfaust runs with both of its update orders in its
newer implementation, which is faster than the default one; it has no weights. Prints a table and writes
benchmarks/results/palm.json.
"""

import warnings

import numpy as np
from rich.table import Table

from benchmarks.data import centroids, rows
from benchmarks.harness import alternate, console, keeping, machine, save
from quickmeans.transform import hadamard, hierarchical_palm4msa, palm4msa

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about optional packages
    from pyfaust.fact import hierarchical
    from pyfaust.fact import palm4msa as faust_palm4msa
    from pyfaust.factparams import ParamsHierarchical, ParamsPalm4MSA, StoppingCriterion
    from pyfaust.proj import splincol

SWEEPS = 30
ORDERS = (32, 128, 512)  # of Hadamard matrices


def shapes(U, Q):
    A = min(U.shape)
    return [(A, A)] * (Q - 1) + [(A, U.shape[1])]


def relative_error(U, V):
    return float(np.linalg.norm(U - V) / np.linalg.norm(U))


def faust_flat(U, Q, k, right_to_left):
    sets = [splincol(shape, k) for shape in shapes(U, Q)]
    stop = StoppingCriterion(num_its=SWEEPS)
    return lambda: faust_palm4msa(U, ParamsPalm4MSA(sets, stop, is_update_way_R2L=right_to_left), backend=2020)


def faust_hierarchical(U, Q, k):
    """Return a call whose residual is on the right and halved per level, as in hierarchical_palm4msa."""
    *square, last = shapes(U, Q)
    levels = [max(k, len(U) >> level) for level in range(1, Q - 1)]
    residuals = [splincol(last, residual) for residual in levels] + [splincol(last, k)]
    stop = StoppingCriterion(num_its=SWEEPS)
    parameters = ParamsHierarchical([splincol(shape, k) for shape in square], residuals, stop, stop,
                                    is_update_way_R2L=True)  # fmt: skip
    return lambda: hierarchical(U, parameters, backend=2020)


def compare(name, U, Q, k, calls, rounds):
    """Return one record per candidate: best seconds, relative error and non-zeros of its result."""
    calls, results = keeping(calls)
    seconds = alternate(calls, rounds=rounds, most=20.0)
    records = []
    for method, best in seconds.items():
        result = results[method]
        product = result.product if hasattr(result, "product") else result
        nnz = product.nnz if hasattr(result, "product") else int(result.nnz_sum())
        records.append({"data": name, "K": U.shape[0], "D": U.shape[1], "n_factors": Q, "sparsity_level": k,
                        "method": method, "nnz": nnz, "seconds": best,
                        "relative_error": relative_error(U, product.toarray())})  # fmt: skip
    return records


def matrices():
    U = np.random.default_rng(0).standard_normal((128, 512))
    yield "Gaussian", U, 6, 5
    yield "mnist", centroids(rows("mnist"), 30)[0].astype(np.float64), 4, 5


def main():
    records = []
    for name, U, Q, k in matrices():
        flat = {
            "palm4MSA": lambda U=U, Q=Q, k=k: palm4msa(U, Q, k, max_iter=SWEEPS, tol=0),
            "pyfaust palm4MSA": faust_flat(U, Q, k, right_to_left=False),
            "pyfaust palm4MSA, right to left": faust_flat(U, Q, k, right_to_left=True),
        }
        for record in compare(name, U, Q, k, flat, rounds=7):
            records.append(record | {"sweeps": SWEEPS, "seconds_per_sweep": record["seconds"] / SWEEPS})
        levels = {
            "hierarchical": lambda U=U, Q=Q, k=k: hierarchical_palm4msa(U, Q, k, max_iter=SWEEPS, tol=0),
            "pyfaust hierarchical": faust_hierarchical(U, Q, k),
        }
        records += compare(name, U, Q, k, levels, rounds=3)
    for order in ORDERS:
        H, Q = hadamard(order).toarray(), int(np.log2(order))
        calls = {"hierarchical": lambda H=H, Q=Q: hierarchical_palm4msa(H, Q, 2)}
        if order <= 128:
            calls["pyfaust hierarchical, 'hadamard'"] = lambda H=H: hierarchical(H, "hadamard", backend=2020)
        records += compare("Hadamard", H, Q, 2, calls, rounds=3)
    table = Table(title="palm4MSA")
    for column in ("data", "K x D", "Q, k", "method", "non-zeros", "relative error", "ms", "ms per sweep"):
        table.add_column(column, justify="left" if column in ("data", "method") else "right")
    for r in records:
        sweep = f"{1e3 * r['seconds_per_sweep']:.2f}" if "seconds_per_sweep" in r else ""
        table.add_row(r["data"], f"{r['K']} x {r['D']}", f"{r['n_factors']}, {r['sparsity_level']}", r["method"],
                      str(r["nnz"]), f"{r['relative_error']:.2g}", f"{1e3 * r['seconds']:.0f}", sweep)  # fmt: skip
    console.print(table)
    console.print(f"Results are in {save('palm', {'machine': machine('pyfaust'), 'records': records})}")


if __name__ == "__main__":
    main()
