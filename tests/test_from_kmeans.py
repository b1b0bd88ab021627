"""Code that was written for scikit-learn's KMeans: scikit-learn's own tests, with QKMeans in the place of KMeans."""

import importlib.util
import warnings

import numpy as np
import pytest
import sklearn.cluster
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans

# Tests of private functions and attributes of scikit-learn
PRIVATE = {
    "test_euclidean_distance",
    "test_inertia",
    "test_is_same_clustering",
    "test_k_means_function",
    "test_kmeans_init_auto_with_initial_centroids",
    "test_minibatch_reassign",
    "test_minibatch_update_consistency",
    "test_n_init_auto",
    "test_relocate_empty_clusters",
    "test_sample_weight_init",
    "test_sample_weight_zero",
    *(f"test_kmeans_plusplus_{what}" for what in ("wrong_params", "output", "norms", "dataorder")),
}
# What docs/coming-from-kmeans.md names as different
DIFFERENT = {
    "test_feature_names_out",  # they begin with the name of the class; tested below
    "test_kmeans_verbose",
    "test_minibatch_declared_convergence",
    "test_minibatch_iter_steps",
    "test_minibatch_kmeans_init_size",
    "test_minibatch_kmeans_warning_init_size",
    "test_minibatch_with_many_reassignments",
    "test_score_max_iter",  # mini-batches have nothing left to gain after the search
}
GIVEN, FEWER = "Explicit initial center position passed", "Number of distinct clusters (3)"
TESTS = "sklearn.cluster.tests.test_k_means"


def mini_batches(n_clusters=8, **parameters):
    return QKMeans(n_clusters, **{"batch_size": 1024} | parameters)


def scikit_learns_tests():
    """The module of the tests, in which the names KMeans and MiniBatchKMeans stand for QKMeans."""
    spec = importlib.util.find_spec(TESTS)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.cluster, "KMeans", QKMeans)
        patch.setattr(sklearn.cluster, "MiniBatchKMeans", mini_batches)
        spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if name.startswith("test_")}


if importlib.util.find_spec(TESTS) is not None:  # some distributions of scikit-learn leave its tests out
    globals().update({
        name: test for name, test in scikit_learns_tests().items() if name not in PRIVATE | DIFFERENT
    })  # fmt: skip


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    return request.param


def test_the_tests_left_out_exist():
    if importlib.util.find_spec(TESTS) is not None:
        assert scikit_learns_tests().keys() >= PRIVATE | DIFFERENT


def test_no_parameter_of_kmeans_is_missing():
    ours, theirs = QKMeans().get_params(), sklearn.cluster.KMeans().get_params()
    assert {name: ours[name] for name in theirs} == theirs


def test_more_iterations_are_no_worse():
    X = np.random.default_rng(0).standard_normal((100, 10))
    one, ten = (QKMeans(n_init=1, random_state=0, search="none", max_iter=n).fit(X) for n in (1, 10))
    assert ten.score(X) > one.score(X)


def test_names_of_features():
    names = QKMeans(3).fit(np.random.default_rng(0).standard_normal((20, 2))).get_feature_names_out()
    assert names.tolist() == ["qkmeans0", "qkmeans1", "qkmeans2"]


@pytest.mark.parametrize("n_init", [3, np.int64(3)])
def test_warnings_point_to_the_caller(n_init):
    X = np.repeat(np.eye(3), 2, axis=0)
    with pytest.warns() as given:
        QKMeans(4, init=X[:4], n_init=n_init).fit(X)
    assert [(warning.category, str(warning.message)) for warning in given] == [
        (RuntimeWarning, f"{GIVEN}: performing only one init in QKMeans instead of n_init=3."),
        (ConvergenceWarning, f"{FEWER} found smaller than n_clusters (4). Possibly due to duplicate points in X."),
    ]
    assert {warning.filename for warning in given} == {__file__}


def test_one_run_from_an_array_does_not_warn():
    X = np.eye(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QKMeans(2, init=X[:2]).fit(X)
        QKMeans(2, init=X[:2], n_init=1, algorithm="elkan", copy_x=False).fit(X)


@pytest.mark.parametrize("wrong", [{"algorithm": "full"}, {"algorithm": None}, {"copy_x": "yes"}, {"metric": True}])
def test_parameters_without_effect_are_checked(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
        QKMeans(2, **wrong).fit(np.eye(4))


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
def test_they_have_no_effect(algorithm):
    X = np.random.default_rng(0).standard_normal((200, 3))
    expected = QKMeans(5, random_state=0).fit(X)
    found = QKMeans(5, random_state=0, algorithm=algorithm, copy_x=False).fit(X)
    assert (found.cluster_centers_ == expected.cluster_centers_).all()
