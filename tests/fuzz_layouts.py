"""Random rows in random memory layouts and types: every method must give what it gives for the plain array.

``python tests/fuzz_layouts.py --seconds 600`` draws whole numbers of random shapes, which all types that it uses hold
exactly, in groups that lie apart, so that rounding does not decide which centroid is nearest. It lays them out at
random (strides of any sign, paddings, offsets that are not aligned, byte orders, types, sparse forms, several of them
after each other) and compares all methods with those of the C-contiguous float64 array. It prints the seed of every
case that differs; ``--seed`` repeats one.
"""

import argparse
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from tallies import add_tally

from quickmeans import QKMeans

TYPES = ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
METHODS = {
    "fit": lambda model, X: model.fit(X).labels_,
    "predict": lambda model, X: model.predict(X),
    "predict exact": lambda model, X: model.predict(X, exact=True),
    "transform": lambda model, X: model.transform(X),
    "score": lambda model, X: model.score(X),
    "nearest": lambda model, X: model.nearest(X, 2)[0],
}


def groups(rng):
    """Return different rows of whole numbers around some prototypes that lie apart, and the number of prototypes."""
    n, D, K = int(rng.integers(2, 400)), int(rng.integers(1, 90)), int(rng.integers(2, 9))
    prototypes = np.zeros((K, D))
    prototypes[:, 0] = 10 + 25 * rng.permutation(K)  # at least 25 apart in the first column
    prototypes[:, 1:] = rng.integers(3, 200, (K, D - 1))
    X = prototypes[np.concatenate([np.arange(K), rng.integers(K, size=n)])]
    X[:, 0] += rng.integers(-2, 3, len(X))
    X[:, 1:] += rng.integers(-2, 3, (len(X), D - 1)) if D < 40 else 0
    return X.astype(np.float64), prototypes


def strided(rng, X):
    """Return X with other strides: rows and columns apart, in any direction, in C or Fortran order."""
    (n, D), (row, column) = X.shape, rng.integers(1, 4, size=2)
    host = np.full((n * row, D * column), 77, X.dtype, order="CF"[rng.integers(2)])
    signs = rng.choice([-1, 1], size=2)
    view = host[::row, ::column][:: signs[0], :: signs[1]]
    view[...] = X
    return view


def unaligned(rng, X):
    """Return X as a field of records, so that its numbers begin at any byte."""
    packed = np.zeros(len(X), np.dtype([("pad", "u1", (int(rng.integers(1, 8)),)), ("row", X.dtype, (X.shape[1],))]))
    packed["row"] = X
    return packed["row"]


def typed(rng, X):
    """Return X as another type and in another order of bytes."""
    return X.astype(np.dtype(str(rng.choice(TYPES))).newbyteorder("<>"[rng.integers(2)]))


def frozen(rng, X):
    """Return X so that nobody can write to it."""
    X = X.copy()
    X.flags.writeable = False
    return X


def compressed(rng, X):
    """Return X as a sparse matrix of a random form with whole or 64-bit indices."""
    form = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array][rng.integers(4)]
    return form(X.astype(["f4", "f8", "i4", "i8"][rng.integers(4)]))


def laid_out(rng, X):
    """Return X after some random changes of its layout, and their names."""
    names = []
    for _ in range(int(rng.integers(1, 4))):
        change = [strided, unaligned, typed, frozen][rng.integers(4)]
        X = change(rng, X)
        names.append(change.__name__)
    if rng.random() < 0.15:
        X = compressed(rng, np.ascontiguousarray(X, np.float64))
        names.append(type(X).__name__)
    return X, names


def case(seed):
    """Compare all methods on one layout; return its name, and what differed."""
    rng = np.random.default_rng(seed)
    X, prototypes = groups(rng)
    variant, names = laid_out(rng, X)
    wrong = []
    fitted = QKMeans(len(prototypes), init=prototypes, max_iter=3).fit(X)
    for method, call in METHODS.items():
        plain = QKMeans(len(prototypes), init=prototypes, max_iter=3) if method == "fit" else fitted
        other = QKMeans(len(prototypes), init=prototypes, max_iter=3) if method == "fit" else fitted
        try:
            # float16 and integers are measured in float32, where small distances are differences of large squares
            if not np.allclose(call(other, variant), call(plain, X), rtol=1e-4, atol=5e-3):
                wrong.append(method)
        except Exception:
            wrong.append(f"{method}: {traceback.format_exc(limit=-1)}")
    return "; ".join(names), wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="one case only")
    parser.add_argument("--tally", type=Path, help="a JSON file in which the counts of several runs are added up")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.seed is not None:
        print(case(options.seed))
        return
    begin, first, counts, wrong = time.monotonic(), time.time_ns() % 10**12, Counter(), 0
    while time.monotonic() - begin < options.seconds:
        seed = first + counts["layouts"]
        names, differing = case(seed)
        counts["layouts"] += 1
        if differing:
            wrong += 1
            print(f"seed {seed}: {names}: {differing}", flush=True)
    print(f"{counts['layouts']} layouts, {wrong} differed")
    if options.tally:
        add_tally(options.tally, time.monotonic() - begin, {"layouts": counts["layouts"], "differed": wrong})


if __name__ == "__main__":
    main()
