"""Where a fit has got to, in a file from which it can go on after it was killed."""

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.files import container
from quickmeans.files.container import InvalidModelError
from quickmeans.kmeans.calibration import ScreenChooser as Screener
from quickmeans.kmeans.lloyd import Iterate as Clustering
from quickmeans.kmeans.product_rows import ProductRows
from quickmeans.kmeans.rows import Points
from quickmeans.transform import SparseProduct

# They change nothing but how far, how fast and how loud a fit goes.
_FREE = {"max_iter", "n_threads", "verbose", "callback", "checkpoint", "random_state"}


class Checkpoint:
    """The file of one fit: written after every iteration, at once or not at all.

    It knows the data by the moments of their columns, and the parameters; a file of others is refused. The seed is that
    of the file, if there is one: samples that are drawn again are the same again.
    """

    def __init__(self, model: Any, points: Points, seed: int) -> None:
        self.path = os.fsdecode(model.checkpoint)
        self.shape = (model.n_clusters, points.n_columns)
        self.frame = points.geometry
        self.marks = {"data": _mark_of_data(points), "parameters": _mark_of_parameters(model)}
        self.about, self.tensors = self._read()
        self.seed = self.about["seed"] if self.about else seed

    def _read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What is in the file; nothing if there is none."""
        try:
            with open(self.path, "rb") as file:
                about, tensors, _ = container.read(file)
            if about.get("class") != "Checkpoint":
                raise InvalidModelError("is no checkpoint of a fit.")
        except FileNotFoundError:
            return {}, {}
        except InvalidModelError as error:
            raise InvalidModelError(f"{self.path} {error}") from None
        for what, mark in self.marks.items():
            if about.get(what) != mark:
                raise ValueError(
                    f"{self.path} is the checkpoint of a fit with other {what}; take the same, or another file."
                )
        return about, tensors

    def resume(self, screener: Screener) -> Clustering | None:
        """The iteration as it was, or None if there is nothing to go on from."""
        if not self.about:
            return None
        centers = container.take(self.tensors, "centers", 2, ("float64",))
        if centers.shape != self.shape:
            raise InvalidModelError(f"{self.path} is not a valid checkpoint: its centers must have shape {self.shape}.")
        rank = container.number(self.about, "rank", int)
        basis = container.take(self.tensors, "basis", 2, ("float32", "float64")) if rank else None
        screener.take_kind(rank, container.number(self.about, "reach", float), basis)
        current = self._product("current")
        best = self._product("best") or current
        run = Clustering(centers, screener(centers) if best is None else best, latest=current)
        run.history = container.take(self.tensors, "history", 1, ("float64",)).tolist()
        run.n_iter = container.number(self.about, "n_iter", int)
        run.converged = bool(self.about["converged"])
        if "counts" in self.tensors:
            run.counts = container.take(self.tensors, "counts", 1, ("float64",))
        return run

    def _product(self, name: str) -> ProductRows | None:
        """The rows of a product that was stored under this name, or None."""
        n_factors = container.number(self.about, name, int)
        product = container.take_product(n_factors, self.tensors, self.shape[1], self.frame.dtype, name)
        return None if product is None else ProductRows(product, self.frame)

    def before(
        self, observe: Callable[[int, float], object], run: Clustering, screener: Screener
    ) -> Callable[[int, float], object]:
        """An observer that writes the file, and then is the given one."""

        def observer(iteration: int, objective: float) -> object:
            self.write(run, screener)
            return observe(iteration, objective)

        return observer

    def write(self, run: Clustering, screener: Screener) -> None:
        """Replace the file. If that fails (a full disk), the old one stays."""
        rank, reach, basis = screener.kind()
        tensors = {"centers": run.centers, "history": np.array(run.history)}
        tensors |= {name: T for name, T in (("basis", basis), ("counts", run.counts)) if T is not None}
        about = self.marks | {"seed": self.seed, "n_iter": run.n_iter, "converged": run.converged}
        for name, product in _products(run).items():
            tensors |= container.product_tensors(product, name)
            about[name] = 0 if product is None else len(product.factors)
        data = container.encode("Checkpoint", about | {"rank": rank, "reach": reach}, tensors)
        try:
            container.write(self.path, data)
        except OSError as error:
            message = f"The checkpoint {self.path} could not be written ({error.strerror}); the last one is intact."
            raise OSError(error.errno, message) from None


def _products(run: Clustering) -> dict[str, SparseProduct | None]:
    """The last product, and the best if that is another one; none where centroids are means."""
    if run.latest is None:
        return {"current": None, "best": None}
    return {"current": run.latest.product, "best": None if run.assigner is run.latest else run.assigner.product}


def _mark_of_data(points: Points) -> str:
    """A digest of the shape, type and moments of the rows, and of their weights: other data have others."""
    digest = hashlib.sha256(f"{len(points)} {points.n_columns} {points.rows.dtype} {points.total!r}".encode())
    digest.update(points.geometry.mean.tobytes())
    digest.update(points.variances.tobytes())
    return digest.hexdigest()


def _mark_of_parameters(model: Any) -> str:
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _FREE}
    if isinstance(model.random_state, int | np.integer):
        given["random_state"] = int(model.random_state)
    text = json.dumps({name: _plain(value) for name, value in given.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Something that is written the same for equal values."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    array = np.asarray(value)
    return [str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
