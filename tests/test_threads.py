import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quickmeans.threads import resolve_threads, run_in_threads, with_one_blas_thread


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
    with pytest.raises(ValueError, match=f"n_threads must be a whole number not below 1, got {value!r}"):
        resolve_threads(value)


def test_huge_numbers_are_clamped():
    assert resolve_threads(10**30) == 1024


def blas_threads():
    """The numbers of threads of all BLAS libraries but faiss's, whose OpenMP has one number for each thread."""
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in libraries if library["threading_layer"] != "openmp"}


@pytest.mark.parametrize("n_threads", [1, 2, 50])
def test_every_part_is_processed_once(n_threads):
    workers, counts = [], np.zeros(20, int)

    def make_worker():
        workers.append(threading.get_ident())

        def work(part):
            assert blas_threads() == {1}
            counts[part] += 1

        return work

    before = blas_threads()
    run_in_threads(make_worker, range(20), n_threads)
    assert (counts == 1).all()
    assert len(workers) == min(n_threads, 20)
    assert blas_threads() == before


def test_no_parts():
    run_in_threads(lambda: pytest.fail, [], 2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_is_raised_and_ends_the_work(n_threads):
    done = []

    def work(part):
        if part == 0:
            raise KeyError("broken part")
        time.sleep(0.02)
        done.append(part)

    with pytest.raises(KeyError, match="broken part"):
        run_in_threads(lambda: work, range(1000), n_threads)
    assert len(done) < 20


def test_an_interrupt_ends_the_work():
    """Also where polars has installed its handler of the signal, after which waits go on."""
    import polars  # noqa: F401

    done = []

    def work(part):
        if part == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.01)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        run_in_threads(lambda: work, range(1000), 2)
    assert len(done) < 50


@contextmanager
def call_in_another_thread():
    """Another thread is in a call with one BLAS thread; the generator's value ends the call, but not the thread."""
    entered, end_call, ended, end_thread = (threading.Event() for _ in range(4))

    @with_one_blas_thread
    def call():
        entered.set()
        end_call.wait(30)

    def run():
        call()
        ended.set()
        end_thread.wait(30)

    def end():
        end_call.set()
        assert ended.wait(30)

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(30)
    try:
        yield end
    finally:
        end_call.set()
        end_thread.set()
        thread.join()


def test_calls_of_two_threads_that_overlap():
    one_thread = with_one_blas_thread(lambda end: (end(), blas_threads())[1])
    with threadpool_limits(3, user_api="blas"):
        with_one_blas_thread(blas_threads)()
        with call_in_another_thread() as end:
            assert blas_threads() == {1}
            assert one_thread(end) == {1}
            assert blas_threads() == {3}, "the last call to end restores the number, whichever thread it is in"


def in_forked_child(function):
    """Return what function() returns in a forked child: a small whole number."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(function())
        except BaseException:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_during_a_call_in_another_thread_restores_blas():
    nested = with_one_blas_thread(lambda: max(blas_threads()))
    with threadpool_limits(3, user_api="blas"), call_in_another_thread() as end:
        assert in_forked_child(lambda: max(blas_threads())) == 3
        assert in_forked_child(lambda: 10 * nested() + max(blas_threads())) == 13
        assert blas_threads() == {1}, "the parent keeps its limit"
        end()
        assert blas_threads() == {3}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_within_a_call_keeps_the_limit_until_the_call_ends():
    call = with_one_blas_thread(lambda: (os.fork(), max(blas_threads())))
    with threadpool_limits(3, user_api="blas"):
        child, within = call()
        if child == 0:
            os._exit(10 * within + max(blas_threads()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13
