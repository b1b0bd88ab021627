"""Checkpoints that are forged, and checkpoints of other fits."""

import functools

import numpy as np
import pytest
from fuzz_files import written
from saved import X

from quickmeans import InvalidModelError, QKMeans
from quickmeans.files import container

pytestmark = pytest.mark.filterwarnings("ignore:Number of distinct clusters")
OPTIONS = {"n_clusters": 12, "random_state": 0, "tol": 0}
KINDS = {
    "means": OPTIONS,
    "product": OPTIONS | {"shortlist": 0, "compression": 3},
    "batches": OPTIONS | {"batch_size": 100},
}


def fit(path, max_iter=3, **options):
    return QKMeans(**OPTIONS | options, max_iter=max_iter, checkpoint=path).fit(X)


def forge(path, facts=(), tensors=(), without=()):
    """Change the file, with a right checksum."""
    state = container.read(path)
    state.facts |= dict(facts)
    state.tensors |= dict(tensors)
    for name in without:
        (state.facts if name in state.facts else state.tensors).pop(name)
    path.write_bytes(written(state))


def sparse(name, n_rows):
    """One factor that has no coefficients."""
    parts = {
        "indptr": np.zeros(n_rows + 1, np.uint8),
        "indices": np.zeros(0, np.uint8),
        "data": np.zeros(0, np.float32),
    }
    return {f"{name}.0.{part}": array for part, array in parts.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_needed(kind, tmp_path):
    fit(tmp_path / "whole", **KINDS[kind])
    data, state = (tmp_path / "whole").read_bytes(), container.read(tmp_path / "whole")
    for name in [*state.facts, *state.tensors]:
        if name in ("data", "parameters", "counts", "class", "format_version", "library_version", "sha256"):
            continue
        (tmp_path / "c").write_bytes(data)
        forge(tmp_path / "c", without=[name])
        with pytest.raises(InvalidModelError):
            fit(tmp_path / "c", **KINDS[kind])


@pytest.mark.parametrize(
    ("kind", "facts", "tensors", "message"),
    [
        ("product", {"current": 1}, sparse("current", 100_000), r"current product must have shape \(12, 24\)"),
        ("product", {"current": 1}, sparse("current", 11), r"current product must have shape \(12, 24\)"),
        ("product", {"best": 1}, sparse("best", 100_000), r"best product must have shape \(12, 24\)"),
        ("product", {"current": 0}, {}, "products if and only if"),
        ("means", {"current": 1}, sparse("current", 12), "products if and only if"),
        ("means", {"best": 1}, sparse("best", 12), "products if and only if"),
        ("means", {"current": 10**9}, {}, "current must be between 0 and 64"),
        ("means", {"n_iter": 10**15}, {}, "history must have one or two numbers per iteration"),
        ("means", {"n_iter": 0}, {}, "n_iter must be at least 1"),
        ("means", {"n_iter": 2.0}, {}, "n_iter must be a finite int"),
        ("means", {"margin": -9.0}, {}, "margin must be between 0.0 and 1.0"),
        ("means", {"rank": -1}, {}, "rank must be between 0 and 12"),
        ("means", {"rank": 4}, {"basis": np.ones((24, 3))}, r"basis must have 24 rows and 4 to 12 columns"),
        ("means", {"rank": 4}, {"basis": np.ones((23, 4))}, r"basis must have 24 rows and 4 to 12 columns"),
        ("means", {"rank": 4}, {"basis": np.full((24, 4), np.nan)}, "basis must be finite"),
        ("means", {"seed": -1}, {}, "seed must be between 0"),
        ("means", {"seed": 2**40}, {}, "seed must be between 0"),
        ("means", {"converged": 1}, {}, "converged must be true or false"),
        ("means", {}, {"centers": np.zeros((13, 24))}, r"centers must have shape \(12, 24\)"),
        ("means", {}, {"centers": np.full((12, 24), 1e200)}, "squared norms of its mean and centroids"),
        ("means", {}, {"other": np.zeros(3)}, "must not have a tensor 'other'"),
        ("batches", {}, {"counts": np.zeros(11)}, "counts must be 12 numbers"),
        ("batches", {}, {"counts": np.full(12, -1.0)}, "counts must be 12 numbers"),
    ],
)
def test_forged_fields(kind, facts, tensors, message, tmp_path):
    fit(tmp_path / "c", **KINDS[kind])
    forge(tmp_path / "c", facts, tensors)
    with pytest.raises(InvalidModelError, match=rf"c is not a valid checkpoint: .*{message}"):
        fit(tmp_path / "c", max_iter=5, **KINDS[kind])


# ---- which fit a checkpoint belongs to ----------------------------------------------------------------------------


def first_rows(X, n_clusters, random_state):
    return X[:n_clusters]


def last_rows(X, n_clusters, random_state):
    return X[-n_clusters:]


def test_a_function_of_a_module_is_known_by_its_name(tmp_path):
    whole = fit(tmp_path / "whole", init=first_rows, n_init=1, max_iter=6)
    fit(tmp_path / "c", init=first_rows, n_init=1, max_iter=2)
    model = fit(tmp_path / "c", init=first_rows, n_init=1, max_iter=6)
    np.testing.assert_array_equal(model.objective_history_, whole.objective_history_)
    with pytest.raises(ValueError, match="with other parameters"):
        fit(tmp_path / "c", init=last_rows, n_init=1)


class Start:
    def method(self, X, n_clusters, random_state):
        return X[:n_clusters]

    __call__ = method


@pytest.mark.parametrize(
    "init",
    [
        lambda X, n_clusters, random_state: X[:n_clusters],
        functools.partial(first_rows),
        functools.wraps(first_rows)(lambda *args, **more: X[:12]),
        Start(),
        Start().method,
    ],
    ids=["lambda", "partial", "wrapped", "object", "method"],
)
def test_functions_that_cannot_be_told_apart(init, tmp_path):
    with pytest.raises(ValueError, match="With a checkpoint init must be a function from the top level of a module"):
        fit(tmp_path / "c", init=init, n_init=1)
    assert not (tmp_path / "c").exists()


def test_parameters_are_compared_by_value(tmp_path):
    start = X[:12].astype(np.float64)
    fit(tmp_path / "c", init=start, n_init=1, batch_size=100)
    equal = {"n_clusters": np.int64(12), "tol": np.float32(0), "search": np.str_("auto"), "random_state": np.int32(0)}
    for init in (start.tolist(), np.asfortranarray(start), start.astype(">f8"), X[:12]):
        fit(tmp_path / "c", init=init, n_init=np.int64(1), batch_size=np.uint16(100), **equal)
    for other in (
        {"init": start + 1},
        {"init": start[::-1]},
        {"tol": 0.5},
        {"batch_size": 101},
        {"search": "none"},
    ):
        with pytest.raises(ValueError, match="with other parameters"):
            fit(tmp_path / "c", **{"init": start, "n_init": 1, "batch_size": 100} | other)
