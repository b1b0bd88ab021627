"""What a run must know: the parameters of the estimator, checked and resolved once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from quickmeans.checks import LARGEST_WHOLE, check_flag, check_number, check_whole
from quickmeans.kmeans.sizes import SizeBounds
from quickmeans.transform.factors import MOST_FACTORS
from quickmeans.transform.presets import is_preset
from quickmeans.transform.solvers import Solver, SolverSettings, solver_by

# init(X, n_clusters, random_state=...) -> centroids
Init = str | NDArray[np.float64] | Callable[..., Any]
INITS = ("k-means++", "random")
METRICS = ("euclidean", "cosine")
ALGORITHMS = ("lloyd", "elkan")  # of scikit-learn; accepted, and all the same here


class Effort(NamedTuple):
    """How long to search for better centroids.

    Attributes
    ----------
    passes : float
        The largest amount of work, in passes that compare every row with every centroid; where every iteration is one,
        in four of them.
    work : tuple of float
        The same in multiply-adds, at least and at most: 2e10 to 4e10 of them take a second on two cores.
    patience : float
        A breath that hardly pays is followed by one of this share of its size; zero: there are no breaths.
    """

    passes: float
    work: tuple[float, float] = (2e7, 6e10)
    patience: float = 0.5


_SEARCH_PER_ITERATION = 2.0  # passes: few iterations are asked for to save time, and the search takes as much
SEARCHES = {"none": Effort(0), "auto": Effort(16), "thorough": Effort(160, (2e8, 6e11), 0.8)}
_COMPRESSION = 10.0  # of the product whose rows are the centroids: about that of the paper's factors


@dataclass(frozen=True)
class Settings:
    """The parameters of a run; see :class:`quickmeans.QKMeans` for their meaning.

    Attributes
    ----------
    compression : float or None
        None: chosen by cost.
    shortlist : int or None
        None: as many candidates as the margin lets through. 0: the centroids are the rows of a product.
    effort : Effort
        Of the search for better centroids.
    size_bounds : SizeBounds or None
        On the sizes of clusters.
    stateless : bool
        Whether passes keep nothing from one to the next, so that a run can resume from a checkpoint.
    """

    n_clusters: int
    solver: Solver
    solver_settings: SolverSettings
    compression: float | None
    shortlist: int | None
    init: Init
    n_init: int
    max_iter: int
    tol: float
    effort: Effort
    spherical: bool
    batch_size: int | None
    size_bounds: SizeBounds | None
    stateless: bool
    n_threads: int | None

    @property
    def learns_product(self) -> bool:
        """Whether the centroids are the rows of a product, as in the paper."""
        return self.shortlist == 0

    @property
    def iterates_plainly(self) -> bool:
        """Whether iterations are those of Lloyd, with every row in every pass, and nothing is kept between them."""
        return self.shortlist is None and self.batch_size is None and not self.stateless

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The settings that follow from the parameters of a QKMeans; a ValueError or TypeError names a wrong one."""
        p = dict(parameters)
        _check(p)
        compression = None if p["compression"] == "auto" else float(p["compression"])
        return cls(
            n_clusters=int(p["n_clusters"]),
            solver=solver_by(p["solver"]),
            solver_settings=SolverSettings(compression or _COMPRESSION, p["n_factors"], p["sparsity_level"]),
            compression=compression,
            shortlist=None if p["shortlist"] == "auto" else int(p["shortlist"]),
            init=p["init"],
            n_init=n_runs(p["n_init"], p["init"]),
            max_iter=int(p["max_iter"]),
            tol=float(p["tol"]),
            effort=_effort(p["search"], p["init"], int(p["max_iter"])),
            spherical=p["metric"] == "cosine",
            batch_size=None if p["batch_size"] is None else int(p["batch_size"]),
            size_bounds=_size_bounds(p),
            stateless=p["checkpoint"] is not None,
            n_threads=p["n_threads"],
        )


def _size_bounds(p: dict[str, Any]) -> SizeBounds | None:
    """The bounds on sizes; a ValueError if another parameter does not go with them."""
    bounds = SizeBounds.of(p["min_cluster_size"], p["max_cluster_size"])
    if bounds is None:
        return None
    for name, wrong in (("shortlist", p["shortlist"] == 0), ("batch_size", p["batch_size"] is not None)):
        if wrong:
            raise ValueError(f"min_cluster_size and max_cluster_size do not go with {name}={p[name]!r}; leave it out.")
    if p["checkpoint"] is not None:
        raise ValueError("min_cluster_size and max_cluster_size do not go with a checkpoint; leave it out.")
    return bounds


def _effort(search: str, init: Any, max_iter: int) -> Effort:
    """An array or a callable is the user's own start: it is searched only if that is asked for."""
    if search != "auto":
        return SEARCHES[search]
    effort = SEARCHES["auto" if isinstance(init, str) else "none"]
    return effort._replace(passes=min(effort.passes, _SEARCH_PER_ITERATION * max_iter))


def n_runs(n_init: int | str, init: Any) -> int:
    """How many runs are made, each from a start of its own."""
    if not (isinstance(init, str) or callable(init)):
        return 1
    if n_init != "auto":
        return int(n_init)
    return 10 if callable(init) else 1


def _check(p: dict[str, Any]) -> None:
    for name in ("n_clusters", "max_iter", "sparsity_level"):
        check_whole(name, p[name], 1)
    for name, least, most in (
        ("n_init", 1, LARGEST_WHOLE),
        ("shortlist", 0, LARGEST_WHOLE),
    ):
        if not _is_auto(p[name]):
            check_whole(name, p[name], least, " or 'auto'", most=most)
    if not (_is_auto(p["n_factors"]) or is_preset(p["n_factors"])):
        check_whole("n_factors", p["n_factors"], 1, ", 'auto', 'paper' or 'journal'", most=MOST_FACTORS)
    if not (isinstance(p["search"], str) and p["search"] in SEARCHES):
        raise ValueError(f"search must be 'auto', 'none' or 'thorough', got {p['search']!r}.")
    for name, known in (("metric", METRICS), ("algorithm", ALGORITHMS)):
        if not (isinstance(p[name], str) and p[name] in known):
            raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {p[name]!r}.")
    if p["metric"] == "cosine" and p["shortlist"] == 0:
        raise ValueError("metric='cosine' needs a shortlist: rows of a product do not have length one.")
    for name in ("copy_x", "standardize"):
        check_flag(name, p[name])
    if not isinstance(p["verbose"], bool):
        check_whole("verbose", p["verbose"], 0, ", True or False")
    if isinstance(p["init"], str) and p["init"] not in INITS:
        raise ValueError(f"init must be 'k-means++', 'random', an array or a callable, got {p['init']!r}.")
    if not _is_auto(p["compression"]):
        check_number("compression", p["compression"], 1, ", or 'auto'")
    if p["callback"] is not None and not callable(p["callback"]):
        raise TypeError(f"callback must be callable as callback(iteration, objective), got {p['callback']!r}.")
    check_number("tol", p["tol"], 0)
    if p["batch_size"] is not None:
        check_whole("batch_size", p["batch_size"], 1, " or None")
    if p["checkpoint"] is not None:
        _check_checkpoint(p["checkpoint"], n_runs(p["n_init"], p["init"]))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _check_checkpoint(checkpoint: Any, n_runs: int) -> None:
    if not isinstance(checkpoint, str | os.PathLike):
        raise TypeError(f"checkpoint must be a path or None, got {checkpoint!r}.")
    if not Path(os.fsdecode(checkpoint)).resolve().parent.is_dir():
        raise FileNotFoundError(f"checkpoint={os.fsdecode(checkpoint)!r} is in a directory that does not exist.")
    if n_runs != 1:
        raise ValueError("A checkpoint is of one run; set n_init=1.")
