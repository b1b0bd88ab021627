"""What a fit warns of, in scikit-learn's words where it has them."""

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from quickmeans.callers import warn


def warn_of_parameters(estimator: Any, n_features: int) -> None:
    """Warn of parameters that are right each by itself, and have no effect together or on so few features."""
    rate, init = estimator.compression, estimator.init
    if rate != "auto" and n_features / rate < 1 + 1 / estimator.n_clusters:
        left = f"compression={rate:g} would leave less than one number per centroid of {n_features} features"
        warn(f"{left}; centroids are kept dense.", UserWarning)
    if not (isinstance(init, str) or callable(init) or estimator.n_init in ("auto", 1)):
        warn(
            "Explicit initial center position passed: performing only one init in "
            f"{type(estimator).__name__} instead of n_init={estimator.n_init}.",
            RuntimeWarning,
        )
    if estimator.algorithm == "elkan" and estimator.n_clusters == 1:
        warn("algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.", RuntimeWarning)


def warn_of_empty_clusters(n_filled: int, n_clusters: int, *, coarse: bool) -> None:
    """Warn that fewer clusters than asked for have rows."""
    coarsely = "The product is too coarse for more; a lower compression helps."
    reason = coarsely if coarse else "Possibly due to duplicate points in X."
    message = f"Number of distinct clusters ({n_filled}) found smaller than n_clusters ({n_clusters}). {reason}"
    warn(message, ConvergenceWarning)
