"""QKNystroem on data that are hard on arithmetic: equal, zero, huge, tiny, or far from the origin; and its memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from quickmeans import QKNystroem, load
from quickmeans.nystroem.structured import Structured

KERNELS = ["rbf", "polynomial", "poly", "sigmoid", "linear", "cosine"]
KINDS = ["qkmeans", "kmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_identical_landmarks(kernel, dtype, rng):
    X = np.repeat(rng.standard_normal((3, 6)), 20, axis=0).astype(dtype)
    for kind in ("uniform", "qkmeans"):
        model = QKNystroem(kernel, n_components=12, landmarks=kind, random_state=0).fit(X)
        assert np.isfinite(model.transform(X)).all()
        assert model.approximation_error(X) < 1e-3
    constant = QKNystroem(kernel, n_components=4, landmarks=np.zeros((4, 6))).fit(X)
    assert np.isfinite(constant.transform(X)).all()


def test_zero_rows_have_no_direction(rng):
    X = np.concatenate([np.zeros((2, 4)), rng.standard_normal((20, 4))])
    model = QKNystroem("cosine", n_components=5, landmarks=X[:5]).fit(X)
    np.testing.assert_array_equal(model.kernel_row(X)[:2], 0)
    np.testing.assert_array_equal(model.transform(X)[:2], 0)
    np.testing.assert_allclose(model.kernel_row(X), pairwise_kernels(X, X[:5], metric="cosine"), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_overflow_in_polynomial_kernels(dtype):
    large = np.full((30, 4), 1e18 if dtype == np.float32 else 1e120, dtype)
    with pytest.raises(ValueError, match=f"The polynomial kernel has values that are not finite in {dtype.__name__}"):
        QKNystroem("polynomial", n_components=2, landmarks=np.eye(4)[:2]).fit(large / large[0, 0]).transform(large)
    with pytest.raises(ValueError, match="overflow float64; scale X"):
        QKNystroem(n_components=2).fit(np.full((30, 4), 1e200))


def test_more_components_than_rows():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.warns(UserWarning, match="n_components=10 is more than the 6 rows of X; there will be 6 components"):
        model = QKNystroem(n_components=10, landmarks="uniform").fit(X)
    assert model.transform(X).shape == (6, 6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_landmarks_at_zero_have_no_direction(rng, kind, dtype):
    """Half of the rows are zero; whatever rounding makes of a landmark there must not spoil the others."""
    X = np.concatenate([np.zeros((60, 3)), rng.standard_normal((60, 3)) + 2]).astype(dtype)
    model = QKNystroem("cosine", n_components=20, landmarks=kind, random_state=0).fit(X)
    K = pairwise_kernels(X.astype(np.float64), metric="cosine")
    assert model.approximation_error(X) < 1e-3
    np.testing.assert_allclose(model.approximate_kernel(X), K, atol=5e-3)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_the_cosine_does_not_depend_on_lengths(rng, scale):
    X = rng.standard_normal((50, 6)).astype(np.float32)
    U = X[:5].astype(np.float64)
    expected = QKNystroem("cosine", landmarks=U).fit(X).transform(X)
    found = QKNystroem("cosine", landmarks=U * scale).fit(X).transform(X * np.float32(scale))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_one_long_row_takes_no_digits_from_the_others(rng):
    X = rng.standard_normal((40, 5)).astype(np.float32)
    X[-1] *= 1e5
    model = QKNystroem("cosine", n_components=10, landmarks="uniform", random_state=0).fit(X)
    expected = pairwise_kernels(X.astype(np.float64), model.components_.astype(np.float64), metric="cosine")
    np.testing.assert_allclose(model.kernel_row(X), expected, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_leverage_where_the_kernel_is_zero(kernel):
    model = QKNystroem(kernel, coef0=0, n_components=4, landmarks="leverage").fit(np.zeros((3000, 2)))
    assert len(set(model.component_indices_)) == 4
    assert np.isfinite(model.transform(np.ones((3, 2)))).all()


@pytest.mark.parametrize("kind", ["kmeans", "uniform", "leverage", "hadamard"])
def test_float32_far_from_the_origin(rng, kind):
    """Numbers that float32 has exactly, so that only the arithmetic can be at fault."""
    near = np.round(rng.standard_normal((300, 10)) * 64).astype(np.float32) / 64
    options = {"gamma": 0.05, "n_components": 20, "landmarks": kind, "random_state": 0}
    X = near + np.float32(4096)
    model = QKNystroem(**options).fit(X)
    landmarks = model.product_.toarray().astype(np.float64) + model.mean_
    squares = ((X[:, None].astype(np.float64) - landmarks) ** 2).sum(axis=2)
    np.testing.assert_allclose(model.kernel_row(X), np.exp(-0.05 * squares), atol=1e-5)


@pytest.mark.parametrize("offset", [1e7, 1e9])
def test_gammas_of_rows_far_from_the_origin(rng, offset):
    X = rng.standard_normal((100, 4))
    for gamma in ("scale", "mean-distance"):
        near, far = (QKNystroem(gamma=gamma, n_components=2, landmarks="uniform").fit(rows) for rows in (X, X + offset))
        assert far.gamma_ == pytest.approx(near.gamma_, rel=1e-5)


def test_rows_too_small_for_a_gamma(rng):
    X = rng.standard_normal((50, 3))
    with pytest.raises(ValueError, match="too near each other for gamma='scale'; scale X"):
        QKNystroem(gamma="scale", n_components=2).fit(1e-160 * X)
    model = QKNystroem(gamma=1e39, n_components=2, landmarks="uniform").fit(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"gamma=1e\+39 is too large for float32; scale X or use float64"):
        model.transform(X.astype(np.float32))
    with pytest.raises(ValueError, match="landmarks has numbers that are not finite in float32"):
        QKNystroem(landmarks=np.full((2, 3), 1e300)).fit(X.astype(np.float32))


def test_any_degree_from_one_on(rng, tmp_path):
    X = np.abs(rng.standard_normal((40, 3)))
    for degree in (1, 1.5, 3.0, 11, np.float32(2.5)):
        model = QKNystroem("poly", degree=degree, landmarks=X[:5]).fit(X)
        expected = pairwise_kernels(X, X[:5], metric="poly", degree=float(degree))
        np.testing.assert_allclose(model.kernel_row(X), expected, rtol=1e-9)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").kernel_row(X), model.kernel_row(X))
    odd = QKNystroem("poly", degree=11, landmarks=-X[:5]).fit(X)
    np.testing.assert_allclose(odd.kernel_row(X), pairwise_kernels(X, -X[:5], metric="poly", degree=11), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "cosine", "polynomial"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_memory_of_kernel_rows_is_that_of_blocks(rng, kernel, container):
    X = container(rng.standard_normal((30000, 20)).astype(np.float32))
    model = QKNystroem(kernel, gamma=0.05, n_components=50, landmarks="uniform", n_threads=2).fit(X)
    tracemalloc.start()
    out = model.kernel_row(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert out.dtype == np.float32
    assert peak < out.nbytes + 2e6


def test_memory_of_structured_landmarks(rng):
    """X is not copied, whatever its order; nor is the transform ever dense: it would take 500 MB here."""
    X = np.asfortranarray(rng.standard_normal((60000, 20)).astype(np.float32))
    tracemalloc.start()
    QKNystroem(n_components=10, landmarks="kmeans-hadamard", random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    assert peak < 0.9 * X.nbytes
    Structured("haar", 3, 5000, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_the_kernel_is_an_array_whatever_the_output(rng, frames):
    X = rng.standard_normal((30, 4))
    model = QKNystroem(n_components=5, random_state=0).fit(X)
    expected = model.approximate_kernel(X, X[:3])
    found = model.set_output(transform=frames).approximate_kernel(X, X[:3])
    np.testing.assert_array_equal(found, expected)
