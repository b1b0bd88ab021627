"""Checks of the parameters of QKMeans."""

import os
from pathlib import Path
from typing import Any

from quickmeans.checks import check_flag, check_number, check_whole
from quickmeans.transform.factors import MOST_FACTORS
from quickmeans.transform.solvers import solver_by


def check_parameters(model: Any) -> None:
    """Raise an error if a parameter of a QKMeans is not of a type and in a range that makes sense."""
    check_whole("n_clusters", model.n_clusters, 1)
    check_whole("max_iter", model.max_iter, 1)
    if model.n_init != "auto":
        check_whole("n_init", model.n_init, 1, " or 'auto'")
    if model.shortlist != "auto":
        check_whole("shortlist", model.shortlist, 0, " or 'auto'")
    check_flag("sample_start", model.sample_start)
    if check_flag("spherical", model.spherical) and model.shortlist == 0:
        raise ValueError("spherical k-means needs a shortlist: rows of a product do not have length one.")
    solver_by(model.solver)
    if isinstance(model.init, str) and model.init not in ("k-means++", "random"):
        raise ValueError(f"init must be 'k-means++', 'random', an array or a callable, got {model.init!r}.")
    if model.compression != "auto":
        check_number("compression", model.compression, 1, ", or 'auto'")
    check_whole("sparsity_level", model.sparsity_level, 1)
    if model.n_factors != "auto":
        check_whole("n_factors", model.n_factors, 1, " or 'auto'", most=MOST_FACTORS)
    if model.callback is not None and not callable(model.callback):
        raise TypeError(f"callback must be callable as callback(iteration, objective), got {model.callback!r}.")
    check_number("tol", model.tol, 0)
    if not isinstance(model.verbose, bool):
        check_whole("verbose", model.verbose, 0, ", True or False")
    if model.batch_size is not None:
        check_whole("batch_size", model.batch_size, 1, " or None")
    if model.checkpoint is not None:
        _check_checkpoint(model)


def _check_checkpoint(model: Any) -> None:
    if not isinstance(model.checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path or None, got {model.checkpoint!r}.")
    if not Path(os.fsdecode(model.checkpoint)).resolve().parent.is_dir():
        raise FileNotFoundError(f"checkpoint={os.fsdecode(model.checkpoint)!r} is in a directory that does not exist.")
    if n_runs(model) != 1:
        raise ValueError("A checkpoint is of one run; set n_init=1.")


def n_runs(model: Any) -> int:
    """Return the number of starts that `n_init` asks for."""
    if model.n_init != "auto":
        return int(model.n_init)
    return 10 if callable(model.init) or (isinstance(model.init, str) and model.init == "random") else 1
