"""One parameter of QKMeans at a time: seconds of fit and predict, objective, labels and size of the model.

    python -m benchmarks.knobs

Image patches, ten iterations unless the parameter says otherwise, all from the same seed; processor time on one
thread. Writes benchmarks/results/knobs.json.
"""

import time
import warnings

import numpy as np
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import rows
from benchmarks.harness import alternate, console, keeping, machine, save
from quickmeans import QKMeans
from quickmeans.files.container import encode

K = 512
BASE = {"max_iter": 10, "tol": 0, "random_state": 0, "n_threads": 1}
KNOBS = {
    "default": {},
    "shortlist=1": {"shortlist": 1},
    "shortlist=4": {"shortlist": 4},
    "shortlist=16": {"shortlist": 16},
    "compression=10": {"compression": 10},
    "compression=40": {"compression": 40},
    "shortlist=0, compression=10": {"shortlist": 0, "compression": 10},
    "shortlist=0, compression=40": {"shortlist": 0, "compression": 40},
    'init="random", n_init=1': {"init": "random", "n_init": 1},
    "n_init=3": {"n_init": 3},
    'search="none"': {"search": "none"},
    'search="thorough"': {"search": "thorough"},
    "max_iter=3": {"max_iter": 3},
    "max_iter=100, tol=1e-4": {"max_iter": 100, "tol": 1e-4},
    "batch_size=2048": {"batch_size": 2048},
}


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)  # after ten iterations
    X = rows("patches")
    models = {name: QKMeans(K, **BASE | changes) for name, changes in KNOBS.items()}
    fits, fitted = keeping({name: lambda model=model: model.fit(X) for name, model in models.items()})
    fit = alternate(fits, rounds=0, clock=time.process_time)
    calls = {name: lambda model=model: model.predict(X) for name, model in fitted.items()}
    predict = alternate(calls, most=20.0, clock=time.process_time)
    records = []
    for name, model in fitted.items():
        exact = model.predict(X, exact=True) if model.shortlist != 0 else model.predict(X)
        records.append(
            {
                "knob": name,
                "fit": fit[name],
                "predict": predict[name],
                "n_iter": model.n_iter_,
                "objective_ratio": model.inertia_ / fitted["default"].inertia_,
                "equal_labels": float(np.mean(exact == model.predict(X))),
                "bytes": len(encode(model.to_state())),
            }
        )
    table = Table("", "fit, s", "predict, ms", "iterations", "objective", "labels as exact", "file, kB")
    for r in records:
        table.add_row(
            r["knob"], f"{r['fit']:.2f}", f"{1e3 * r['predict']:.1f}", str(r["n_iter"]), f"{r['objective_ratio']:.4f}",
            f"{100 * r['equal_labels']:.1f} %", f"{r['bytes'] / 1e3:.0f}",
        )  # fmt: skip
    console.print(table)
    sizes = {"K": K, "D": X.shape[1], "N": len(X)}
    save("knobs", {"machine": machine("scikit-learn"), **sizes, "records": records})


if __name__ == "__main__":
    main()
