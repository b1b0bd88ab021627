"""Small fits have the results that they had when they were recorded."""

import json

import numpy as np
import pytest
import recorded
from recording import CASES, results


@pytest.mark.parametrize("name", CASES)
def test_as_recorded(isa, name):
    assert recorded.differences(name, results(name, isa), isa) == []


def test_nothing_else_is_recorded():
    for part in json.loads(recorded.FILE.read_text(encoding="utf-8")).values():
        assert list(part["cases"]) == list(CASES)


def test_threads_change_no_bit():
    one, all_threads = (results(name, "baseline") for name in ("screen_on_one_thread", "screen"))
    for name, array in all_threads.items():
        assert array.tobytes() == one[name].tobytes(), name


@pytest.fixture
def arrays():
    return results("given_start", "baseline")


def changes(arrays, exact):
    """The names of the results that are not as recorded; in bits there are more of them on another machine."""
    return {words.partition(":")[0] for words in recorded.differences("given_start", arrays, "baseline", exact)}


@pytest.mark.parametrize("name", ["cluster_centers_", "labels_", "inertia_", "n_iter_"])
def test_a_change_is_seen(arrays, name):
    changed = arrays | {name: np.asarray(2 * arrays[name] + 1)}
    assert name in changes(changed, exact=True)
    assert changes(changed, exact=False) == {name}


def test_another_machine_may_round_otherwise(arrays):
    centers, labels = arrays["cluster_centers_"] * np.float32(1 + 1e-6), arrays["labels_"].copy()
    labels[0] += 1
    changed = arrays | {"cluster_centers_": centers, "labels_": labels}
    assert changes(changed, exact=False) == set()
    assert {"cluster_centers_", "labels_"} <= changes(changed, exact=True)


def test_other_types_shapes_and_names_are_seen(arrays):
    changed = arrays | {"labels_": arrays["labels_"].astype(np.int64), "inertia_": arrays["inertia_"][None]}
    changed["more"] = changed.pop("score")
    names = {"labels_", "inertia_", "score", "more"}
    assert changes(changed, exact=False) == names
    assert names <= changes(changed, exact=True)
    assert recorded.differences("no such case", arrays, "baseline") == ["not recorded"]
