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


@pytest.mark.parametrize("value", ["0", "-1", "many", "2.5"])
def test_bad_environment(monkeypatch, value):
    monkeypatch.setenv("QUICKMEANS_NUM_THREADS", value)
    with pytest.raises(ValueError, match=f"QUICKMEANS_NUM_THREADS must be a positive whole number, got '{value}'"):
        resolve_threads()
    monkeypatch.delenv("QUICKMEANS_NUM_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert resolve_threads() == len(os.sched_getaffinity(0)), "a variable of others is not ours to refuse"


@pytest.mark.parametrize("value", [2.5, "2", True])
def test_what_is_not_a_whole_number(value):
    with pytest.raises(TypeError, match=f"n_threads must be a whole number, got {value!r}"):
        resolve_threads(value)


def test_huge_numbers_are_clamped():
    assert resolve_threads(10**30) == 1024
