import os

import pytest

from quickmeans.threads import resolve_threads


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("QUICKMEANS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_order_of_precedence(monkeypatch):
    assert resolve_threads() == len(os.sched_getaffinity(0))
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert resolve_threads() == 5
    monkeypatch.setenv("QUICKMEANS_NUM_THREADS", "3")
    assert resolve_threads() == 3
    assert resolve_threads(7) == 7


def test_affinity_is_respected():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert resolve_threads() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("value", ["0", "-1"])
def test_numbers_that_are_not_positive(monkeypatch, value):
    monkeypatch.setenv("QUICKMEANS_NUM_THREADS", value)
    with pytest.raises(ValueError, match=f"QUICKMEANS_NUM_THREADS must be at least 1, got '{value}'"):
        resolve_threads()
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        resolve_threads(int(value))


def test_what_is_not_a_number(monkeypatch):
    monkeypatch.setenv("QUICKMEANS_NUM_THREADS", "many")
    with pytest.raises(TypeError, match="QUICKMEANS_NUM_THREADS must be a whole number, got 'many'"):
        resolve_threads()
    with pytest.raises(TypeError, match=r"n_threads must be a whole number, got 2\.5"):
        resolve_threads(2.5)
