"""The state of a fit after an iteration, in a file from which the fit can go on after it was killed."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from quickmeans.files import container
from quickmeans.files.identity import identity_of_data, identity_of_parameters
from quickmeans.kmeans.calibration import ScreenChooser
from quickmeans.kmeans.groups import Groups
from quickmeans.kmeans.lloyd import Iterate
from quickmeans.kmeans.overflow import refuse_overflow
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.rows import Points
from quickmeans.state import FLOATING, InvalidModelError, State
from quickmeans.transform import SparseProduct


class Checkpoint:
    """The file of one fit, which is replaced after every iteration.

    Parameters
    ----------
    path : str or path
        The file; if it is there, the fit goes on from it.
    points : Points
        The rows; a file with other rows is refused.
    parameters : dict
        All parameters of the estimator by name; a file with other values is refused.
    seed : int
        Of the fit.

    Attributes
    ----------
    seed : int
        That of the file if there is one, so that samples which are drawn again are the same.
    """

    def __init__(self, path: str | os.PathLike[str], points: Points, parameters: Mapping[str, Any], seed: int) -> None:
        self.path, self.geometry = os.fsdecode(path), points.geometry
        self.shape = (int(parameters["n_clusters"]), points.n_columns)
        data = identity_of_data(
            points.rows.shape, points.rows.dtype, points.total, points.geometry.mean, points.variances
        )
        self.has_products = parameters["shortlist"] == 0
        self.identity = {"data": data, "parameters": identity_of_parameters(parameters)}
        self.state = self._read()
        self.seed = seed
        if self.state is not None:
            with container.explaining(self.path, "checkpoint"):
                self.seed = self.state.number("seed", int, 0, 2**31 - 1)

    def _read(self) -> State | None:
        """What is in the file; None if there is none."""
        try:
            with container.explaining(self.path, "checkpoint"):
                state = container.read(self.path)
                if state.kind != "Checkpoint":
                    raise InvalidModelError("is no checkpoint of a fit.")
        except FileNotFoundError:
            return None
        for what, identity in self.identity.items():
            if state.facts.get(what) != identity:
                raise ValueError(
                    f"{self.path} is the checkpoint of a fit with other {what}; take the same, or another file."
                )
        return state

    def resume(self, choose: ScreenChooser) -> Iterate | None:
        """The state of the fit, with the kind of screen that it used; None if there is no file."""
        if self.state is None:
            return None
        with container.explaining(self.path, "checkpoint"):
            return self._resume(self.state, choose)

    def _resume(self, state: State, choose: ScreenChooser) -> Iterate:
        K, D = self.shape
        centers = state.tensor("centers", 2, ("float64",))
        if centers.shape != self.shape:
            raise ValueError(f"its centers must have shape {self.shape}, got {centers.shape}.")
        refuse_overflow(self.geometry, centers + self.geometry.mean)
        rank = state.number("rank", int, 0, min(K, D))
        margin = state.number("margin" if "margin" in state.facts else "reach", float, 0.0, 1.0)
        basis = state.tensor("basis", 2, FLOATING) if rank else None
        if basis is not None and not (len(basis) == D and rank <= basis.shape[1] <= min(K, D)):
            raise ValueError(f"its basis must have {D} rows and {rank} to {min(K, D)} columns, got {basis.shape}.")
        choose.groups = self._groups(state)
        current, best = self._product(state, "current"), self._product(state, "best")
        if (current is not None) != self.has_products or (best is not None and current is None):
            raise ValueError("it must have products if and only if shortlist is 0.")
        history, n_iter = state.tensor("history", 1, ("float64",)), state.number("n_iter", int, 1)
        if not n_iter <= len(history) <= 2 * n_iter:
            raise ValueError(f"its history must have one or two numbers per iteration, got {len(history)}.")
        counts = state.tensor("counts", 1, ("float64",)) if "counts" in state.tensors else None
        if counts is not None and (counts.shape != (K,) or (counts < 0).any()):
            raise ValueError(f"its counts must be {K} numbers that are not negative.")
        converged = state.flag("converged")
        state.finish()
        choose.take_kind(rank, margin, basis)
        rows = [None if product is None else ProductRows(product, self.geometry) for product in (best, current)]
        screen = rows[0] or rows[1] or choose(centers)
        return Iterate(centers, history.tolist(), n_iter, converged, assigner=screen, latest=rows[1], counts=counts)

    def _groups(self, state: State) -> Groups | None:
        if "groups" not in state.tensors:
            return None
        labels = state.tensor("groups", 1, ("int32",))
        n_groups = int(labels.max(initial=0)) + 1
        if labels.shape != self.shape[:1] or (labels < 0).any() or not np.bincount(labels, minlength=n_groups).all():
            raise ValueError(f"its groups must be {self.shape[0]} numbers from 0 on, without a gap.")
        return Groups(labels, state.number("group_reach", float, 0.0))

    def _product(self, state: State, name: str) -> SparseProduct | None:
        product = state.product(self.shape[1], self.geometry.dtype, prefix=name, count=name)
        if product is not None:
            if product.shape != self.shape:
                raise ValueError(f"its {name} product must have shape {self.shape}, got {product.shape}.")
            refuse_overflow(self.geometry, None, product)
        return product

    def write(self, iterate: Iterate, choose: ScreenChooser) -> None:
        """Replace the file. If that fails, as on a full disk, the old one stays."""
        rank, margin, basis = choose.kind()
        tensors = {"centers": iterate.centers, "history": np.array(iterate.history)}
        tensors |= {name: T for name, T in (("basis", basis), ("counts", iterate.counts)) if T is not None}
        facts = self.identity | {"seed": self.seed, "n_iter": iterate.n_iter, "converged": bool(iterate.converged)}
        kind: dict[str, float] = {"rank": rank, "margin": margin}
        if choose.groups is not None:
            tensors["groups"] = choose.groups.labels
            kind["group_reach"] = float(choose.groups.reach)
        state = State("Checkpoint", facts | kind, tensors)
        current = iterate.latest
        state.add_product(None if current is None else current.product, "current", "current")
        is_best = current is None or iterate.assigner is current
        state.add_product(None if is_best else iterate.assigner.product, "best", "best")
        try:
            container.write(self.path, state)
        except OSError as error:
            message = f"The checkpoint {self.path} could not be written ({error.strerror}); the last one is intact."
            raise OSError(error.errno, message) from None
