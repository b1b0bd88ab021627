"""The native search of lists: by hand, against plain NumPy, and the same bits in every way through the lists."""

import numpy as np
import pytest

from quickmeans import kernels

METRICS = [False, True]


class KeptLists(kernels.RowLists):
    """Lists with the memory of their rows."""


def row_lists(parts, ids, *, similarity=False, with_codes=False):
    lists = KeptLists(len(parts), parts[0].shape[1], similarity=similarity, with_codes=with_codes)
    addresses = [np.array([part.ctypes.data for part in parts]), np.array([part.ctypes.data for part in ids])]
    lists.set(np.arange(len(parts)), *addresses, np.array([len(part) for part in parts]))
    lists.memory = parts, ids
    return lists


def random_lists(D, sizes, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((size, D)).astype(np.float32) for size in sizes]
    numbers = rng.permutation(sum(sizes))
    return parts, np.split(numbers, np.cumsum(sizes)[:-1]), rng


def nearest(parts, ids, query, probes, k, similarity):
    """The same by the definition: all values, sorted by value and id."""
    found = []
    for label in probes:
        for row, number in zip(parts[label], ids[label], strict=True) if label >= 0 else ():
            row, x = row.astype(np.float64), query.astype(np.float64)
            found.append((-(row @ x) if similarity else ((row - x) ** 2).sum(), number))
    found = sorted(found)[:k]
    values = [-v if similarity else v for v, _ in found] + [-np.inf if similarity else np.inf] * (k - len(found))
    return values, [number for _, number in found] + [-1] * (k - len(found))


def test_by_hand():
    parts = [np.array([[0, 0], [3, 4]], np.float32), np.array([[1, 0]], np.float32)]
    ids = [np.array([10, 11]), np.array([12])]
    probes = np.array([[0, 1], [1, -1]])
    values, found = row_lists(parts, ids).search(np.array([[0, 0], [0, 0]], np.float32), probes, 3, 1)
    assert values.tolist() == [[0, 1, 25], [1, np.inf, np.inf]]
    assert found.tolist() == [[10, 12, 11], [12, -1, -1]]
    values, found = row_lists(parts, ids, similarity=True).search(np.array([[1, 1]], np.float32), probes[:1], 3, 1)
    assert values.tolist() == [[7, 1, 0]]
    assert found.tolist() == [[11, 12, 10]]


@pytest.mark.parametrize("similarity", METRICS)
@pytest.mark.parametrize("D", [1, 3, 8, 16, 17, 100])
def test_against_numpy(D, similarity):
    parts, ids, rng = random_lists(D, [0, 1, 5, 40, 16, 33, 7])
    Q = rng.standard_normal((30, D)).astype(np.float32)
    probes = np.array([rng.permutation(np.arange(-1, 7))[:4] for _ in Q])
    values, found = row_lists(parts, ids, similarity=similarity).search(Q, probes, 6, 2)
    for i, query in enumerate(Q):
        expected, numbers = nearest(parts, ids, query, probes[i], 6, similarity)
        np.testing.assert_allclose(values[i], expected, rtol=2e-5, atol=1e-5)
        assert (found[i] == numbers).all() or D == 1  # rounding puts near values in another order


@pytest.mark.parametrize("similarity", METRICS)
@pytest.mark.parametrize("D", [5, 48, 300])
def test_the_same_bits_for_any_threads_and_any_batch(D, similarity):
    parts, ids, rng = random_lists(D, rng_sizes(40))
    lists = row_lists(parts, ids, similarity=similarity)
    Q = rng.standard_normal((3000, D)).astype(np.float32)
    probes = rng.integers(-1, 40, (len(Q), 3))
    probes = np.sort(probes, axis=1)
    probes[:, 1:][probes[:, 1:] == probes[:, :-1]] = -1  # a list is looked into once
    whole = lists.search(Q, probes, 5, 1)
    for n_threads in (2, 5):
        for expected, got in zip(whole, lists.search(Q, probes, 5, n_threads), strict=True):
            np.testing.assert_array_equal(got, expected)
    for part in (slice(0, 1), slice(7, 9), slice(100, 103), slice(50, 700)):
        for expected, got in zip(whole, lists.search(Q[part], probes[part], 5, 2), strict=True):
            np.testing.assert_array_equal(got, expected[part])


def rng_sizes(n):
    return np.random.default_rng(1).integers(0, 60, n).tolist()


def hard_rows(kind, parts, rng):
    """Rows whose codes are bad in some way."""
    for part in parts:
        n, D = part.shape
        if kind == "far from zero":
            part *= 1e-3
            part += 1000
        elif kind == "small":
            part *= 1e-21
        elif kind == "large":
            part *= 1e17
        elif kind == "of many sizes":
            part *= 10 ** rng.uniform(-14, 2, (n, 1)).astype(np.float32)
        elif kind == "one is large":
            part[rng.random((n, D)) < 1 / D] *= 1e4
        elif kind == "equal":
            part[:] = np.sign(part[:1])
        elif kind == "sparse":
            part[rng.random((n, D)) < 0.9] = 0
        elif kind == "zero":
            part[: n // 2] = 0


@pytest.mark.parametrize("similarity", METRICS)
@pytest.mark.parametrize(
    "kind", ["normal", "far from zero", "small", "large", "of many sizes", "one is large", "equal", "sparse", "zero"]
)
@pytest.mark.parametrize("D", [3, 64, 200])
def test_codes_change_no_bit(D, kind, similarity):
    parts, ids, rng = random_lists(D, rng_sizes(30))
    hard_rows(kind, parts, rng)
    plain = row_lists(parts, ids, similarity=similarity)
    coded = row_lists(parts, ids, similarity=similarity, with_codes=True)
    Q = np.concatenate([part[:9] for part in parts]) + np.float32(0.1) * np.concatenate(parts)[::-1][:1]
    probes = np.array([rng.permutation(30)[:12] for _ in Q])
    expected = plain.search(Q, probes, 3, 1)
    for n_threads in (1, 2):
        for got, whole in zip(coded.search(Q, probes, 3, n_threads), expected, strict=True):
            np.testing.assert_array_equal(got, whole)
    for i in (0, 17, 100):
        for got, whole in zip(coded.search(Q[i : i + 1], probes[i : i + 1], 3, 1), expected, strict=True):
            np.testing.assert_array_equal(got[0], whole[i])


def test_codes_follow_a_list_that_changes():
    parts, ids, rng = random_lists(64, [200, 200])
    lists = row_lists(parts, ids, with_codes=True)
    other = rng.standard_normal((300, 64)).astype(np.float32)
    numbers = np.arange(1000, 1300)
    lists.set(np.array([1]), np.array([other.ctypes.data]), np.array([numbers.ctypes.data]), np.array([300]), 2)
    Q = other[::3]
    _, found = lists.search(Q, np.tile([0, 1], (len(Q), 1)), 2, 2)
    assert (found[:, 0] == numbers[::3]).all()
    lists.set(*(np.array([value]) for value in (1, 0, 0, 0)))
    assert (lists.search(Q, np.tile([0, 1], (len(Q), 1)), 2, 2)[1] < 400).all()


def test_ties_go_to_the_lower_id():
    rows = np.zeros((100, 4), np.float32)
    ids = np.random.default_rng(0).permutation(100)
    lists = row_lists([rows[:37], rows[37:]], [ids[:37], ids[37:]])
    for n in (1, 50):
        _, found = lists.search(np.ones((n, 4), np.float32), np.tile([1, 0], (n, 1)), 8, 2)
        assert (found == np.arange(8)).all()


def test_nothing_cancels_far_from_zero():
    parts, ids, _ = random_lists(64, [200])
    near = [(part * 1e-3 + 1000).astype(np.float32) for part in parts]
    Q = near[0][:20] + np.float32(0)
    values, found = row_lists(near, ids).search(Q, np.zeros((20, 1), np.int64), 2, 1)
    assert (values[:, 0] == 0).all()
    assert found[:, 0].tolist() == ids[0][:20].tolist()


def test_bad_arguments():
    parts, ids, _ = random_lists(4, [3, 3])
    lists = row_lists(parts, ids)
    Q = np.zeros((2, 4), np.float32)
    for queries, probes in ((Q, [[0], [2]]), (Q, [[0], [-2]]), (Q[:, :3], [[0], [0]]), (Q, [[0]])):
        with pytest.raises(ValueError, match=r"wrong shape|out of range"):
            lists.search(queries, np.array(probes), 1, 1)
    with pytest.raises(ValueError, match="no address"):
        lists.set(np.array([0]), np.array([0]), np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match="out of range"):
        lists.set(np.array([2]), np.array([0]), np.array([0]), np.array([0]))
    values, found = lists.search(Q[:0], np.zeros((0, 1), np.int64), 1, 2)
    assert values.shape == found.shape == (0, 1)


# ---- the coarse step -----------------------------------------------------------------------------------------------


def test_levels_by_hand():
    middles, numbers = np.array([[0.0], [10]], np.float32), np.arange(2)
    centers = [np.array([[1.0], [-1]], np.float32), np.array([[9.0]], np.float32)]
    names = [np.array([5, 3]), np.array([4])]
    coarse = kernels.Coarse([row_lists([middles], [numbers]), row_lists(centers, names)], None, 1)
    Q = np.array([[0.5], [8]], np.float32)
    assert coarse.find(Q, [1, 2], 1).tolist() == [[5, 3], [4, -1]]
    assert coarse.find(Q, [2, 2], 1).tolist() == [[5, 3], [4, 5]]
    rows = [np.zeros((0, 1), np.float32)] * 3 + [np.full((1, 1), x, np.float32) for x in (-1, 9, 1)]
    ids = [np.arange(len(part)) + 7 * i for i, part in enumerate(rows)]
    values, found, bad = coarse.search(Q, [2, 1], row_lists(rows, ids), 1, 1e6, 1)
    assert (values.tolist(), found.tolist(), bad) == ([[0.25], [1]], [[35], [28]], -1)
    for wrong in (np.nan, np.inf, 2000):
        Q[1] = wrong
        assert coarse.search(Q, [2, 1], row_lists(rows, ids), 1, 1e6, 1)[2] == 1


def test_levels_that_do_not_fit():
    one, two = (row_lists([np.zeros((n, 3), np.float32)], [np.arange(n)]) for n in (1, 2))
    with pytest.raises(ValueError, match="that the next does not have"):
        kernels.Coarse([two, one], None, 3)
    with pytest.raises(ValueError, match="widths"):
        kernels.Coarse([one], np.zeros((1, 3), np.float32), 3)
    with pytest.raises(ValueError, match="another index"):
        kernels.Coarse([two], None, 3).search(np.zeros((1, 3), np.float32), [1], one, 1, 1.0, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 70])
def test_coordinates_along_directions(n):
    rng = np.random.default_rng(0)
    B = np.linalg.qr(rng.standard_normal((20, 5)))[0]
    centers, Q = rng.standard_normal((30, 5)), rng.standard_normal((n, 20)).astype(np.float32)
    points = np.column_stack([centers, np.abs(rng.standard_normal(30))]).astype(np.float32)
    coarse = kernels.Coarse([row_lists([points], [np.arange(30)])], B.T, 20)
    distances = ((Q @ B)[:, None] - points[:, :5]) ** 2
    order = np.argsort(distances.sum(axis=2) + points[:, 5] ** 2, axis=1)[:, :4]
    assert (coarse.find(Q, [4], 2) == order).all()
