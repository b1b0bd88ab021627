"""Recorded results: what is kept of them, and whether others are the same.

Of every array `data/recorded.json` has the type, the shape, the first 16 digits of the SHA-256 of its bytes, and its
sum to nine digits, for a person to judge a difference by. Bits depend on the instruction set, on the BLAS of NumPy,
SciPy and faiss, which differs from processor to processor, and on their versions. Where all these are as recorded,
every bit must be. Elsewhere results are compared with those of the first recorded instruction set: sums of
floating-point numbers must be close, and whole numbers, a sample of which is in `data/recorded.npz`, must agree but for
one in a thousand.
"""

import hashlib
import json
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

import faiss
import numpy as np
import scipy
import scipy.linalg  # which loads its BLAS
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

FILE = Path(__file__).parent / "data" / "recorded.json"
SETS = ("avx2", "baseline")
CLOSE, SHARE = 1e-4, 0.999
_SAMPLE = 1000  # of the numbers of an array


def arrays_of(case, isa):
    """What a case, a function of a directory, returns on one instruction set and with BLAS on one thread: arrays."""
    before = os.environ.get("QUICKMEANS_ISA")
    os.environ["QUICKMEANS_ISA"] = isa
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            return {name: np.asarray(value) for name, value in case(Path(folder)).items()}
    finally:
        del os.environ["QUICKMEANS_ISA"]
        if before is not None:
            os.environ["QUICKMEANS_ISA"] = before


def machine(isa):
    """What the bits of results depend on."""
    blas = {}
    for library in threadpool_info():
        folder = Path(library["filepath"]).parent.name
        if library["user_api"] == "blas" and folder.startswith(("numpy", "scipy", "faiss")):
            blas[folder] = f"{library['version']} {library.get('architecture')}"
    versions = {module.__name__: module.__version__ for module in (np, scipy, faiss)}
    return {"isa": isa, "blas": dict(sorted(blas.items())), **versions}


def described(array):
    """Type, shape, SHA-256 of the bytes in C order, sum."""
    return [array.dtype.name, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()[:16], _total(array)]


def _total(array):
    return float(f"{array.sum(dtype=np.float64):.9g}")


def _sample(array):
    return array.ravel()[:: max(1, array.size // _SAMPLE)]


# ---- files ----------------------------------------------------------------------------------------------------------


@cache
def _read():
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def _read_samples():
    with np.load(FILE.with_suffix(".npz")) as file:
        return dict(file)


def write(results):
    """Record arrays by instruction set, case and name; a line for every case."""
    sets = {}
    for isa, cases in results.items():
        lines = {case: json.dumps({name: described(a) for name, a in arrays.items()}) for case, arrays in cases.items()}
        sets[isa] = _braced({"machine": json.dumps(machine(isa)), "cases": _braced(lines)})
    FILE.write_text(_braced(sets) + "\n", encoding="utf-8")
    samples = {
        described(array)[2]: _narrow(_sample(array))
        for arrays in results[SETS[0]].values()
        for array in arrays.values()
        if array.dtype.kind == "i"
    }
    np.savez_compressed(FILE.with_suffix(".npz"), **samples)


def _narrow(whole):
    """Whole numbers in few bytes."""
    return whole.astype(np.result_type(np.min_scalar_type(whole.min()), np.min_scalar_type(whole.max())))


def _braced(texts):
    """JSON of JSON, with a line for every key."""
    lines = ",\n".join(f"{json.dumps(key)}: {text}" for key, text in texts.items())
    return f"{{\n{lines}\n}}"


# ---- comparisons ----------------------------------------------------------------------------------------------------


def is_here(isa):
    """Whether results of this instruction set were recorded on a machine like this one."""
    return isa in SETS and _read()[isa]["machine"] == machine(isa)


def differences(case, arrays, isa, exact=None):
    """What is not as recorded, in words; with `exact` in every bit, which is the default on a machine as recorded."""
    exact = is_here(isa) if exact is None else exact
    known = _read()[isa if exact else SETS[0]]["cases"].get(case)
    if known is None:
        return ["not recorded"]
    words = [f"{name}: is missing" for name in known if name not in arrays]
    words += [f"{name}: is new" for name in arrays if name not in known]
    for name, array in arrays.items():
        if name in known and not (_is_same if exact else _is_close)(array, known[name]):
            words.append(f"{name}: was {_in_words(known[name])}, is {_in_words(described(array))}")
    return words


def _in_words(description):
    dtype, shape, digest, total = description
    return f"{dtype}{shape} {digest} of sum {total:.9g}"


def _is_same(array, description):
    return described(array) == description


def _is_close(array, description):
    dtype, shape, digest, total = description
    if array.dtype.name != dtype or list(array.shape) != shape:
        return False
    if array.dtype.kind == "i":
        return bool((_sample(array) == _read_samples()[digest]).mean() >= SHARE)
    return bool(abs(array.sum(dtype=np.float64) - total) <= CLOSE * np.abs(array).sum(dtype=np.float64))


def compare(cases, isa):
    """Say of every case whether it is as recorded; the number of those that are not."""
    print(f"{isa}: {'every bit must' if is_here(isa) else 'on another machine, all must about'} be the same")
    n_different = 0
    for name, case in cases.items():
        found = differences(name, arrays_of(case, isa), isa)
        n_different += bool(found)
        print(f"  {'different' if found else 'same':10} {name}", *found, sep="\n      ")
    return n_different
