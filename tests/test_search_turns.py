"""Searches while the index changes: every result is that of the index before a change or after it."""

import threading
import time

import numpy as np
import pytest

from quickmeans import QKNeighbors
from quickmeans.search.turns import Turns

X = np.random.default_rng(0).standard_normal((600, 8)).astype(np.float32)


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_a_change_waits_for_searches_and_goes_before_the_next_ones():
    turns, steps = Turns(), []

    def change():
        with turns.changing():
            steps.append("changed")

    def search():
        with turns:
            steps.append("searched")

    with turns, turns:  # two searches at a time
        changing = in_thread(change)
        while not turns._n_waiting:
            time.sleep(0.001)
        searching = in_thread(search)
        time.sleep(0.02)
        assert steps == []
    changing.join(10)
    searching.join(10)
    assert steps == ["changed", "searched"]


@pytest.mark.parametrize("payload", ["flat", "sq8"])
def test_searches_see_all_of_a_change_or_nothing(payload):
    """All rows move and come back: at no time is one there twice, or is an id not that of its row."""
    ids = np.arange(1000, 1600)
    model = QKNeighbors(3, n_lists=8, nprobe=8, payload=payload, random_state=0).fit(X, ids=ids)
    far = model.kneighbors(X[:50] + 0)[1]
    wrong, done = [], threading.Event()

    def search():
        while not done.is_set():
            _, found = model.kneighbors(X[:50])
            if not (found[:, 0] == ids[:50]).all() and not (found >= 1300).all():
                wrong.append(found)

    threads = [in_thread(search) for _ in range(2)]
    for _ in range(15):
        model.remove(ids[:300])
        model.add(X[:300], ids=ids[:300])
    done.set()
    for thread in threads:
        thread.join(30)
    assert not wrong
    np.testing.assert_array_equal(model.kneighbors(X[:50])[1], far)


def test_removal_of_everything():
    model = QKNeighbors(3, n_lists=8, nprobe=2, random_state=0).fit(X)
    model.remove(np.arange(600))
    assert model.n_samples_fit_ == 0
    with pytest.raises(ValueError, match="must not exceed the rows of the index, 0"):
        model.kneighbors(X[:1])
    assert [len(found) for found in model.radius_neighbors(X[:2], 100.0, return_distance=False)] == [0, 0]
    assert model.add(X[:5]).tolist() == [600, 601, 602, 603, 604]
    assert model.kneighbors(X[:5], 1, return_distance=False).ravel().tolist() == [600, 601, 602, 603, 604]


def test_no_queries_and_half_precision():
    model = QKNeighbors(3, n_lists=8, nprobe=8, random_state=0).fit(X)
    with pytest.raises(ValueError, match="0 sample"):
        model.kneighbors(X[:0])
    halves = X[:20].astype(np.float16)
    expected = model.kneighbors(halves.astype(np.float32))
    for ours, other in zip(model.kneighbors(halves), expected, strict=True):
        np.testing.assert_array_equal(ours, other)


def test_rows_removed_between_the_question_and_the_search(monkeypatch):
    model = QKNeighbors(3, n_lists=4, nprobe=4, random_state=0).fit(X)
    check = type(model._index).check_count

    def late(index, k):
        check(index, k)
        if model.n_samples_fit_ > 2:
            index.remove(np.arange(598))

    monkeypatch.setattr(type(model._index), "check_count", late)
    with pytest.raises(ValueError, match="must not exceed the rows of the index, 2, got 3"):
        model.kneighbors(X[:2])
