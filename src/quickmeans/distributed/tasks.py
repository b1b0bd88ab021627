"""Tasks on a Dask cluster."""

import uuid
from contextlib import suppress
from importlib import import_module
from typing import Any

import dask

with suppress(ImportError):  # imported inside `compute`, it would read its settings while one of them is changed
    import_module("distributed")


def compute(task: Any) -> Any:
    """The result of a task, on the cluster of the active client or, without one, in threads of this process."""
    try:
        # An iteration sends its centroids; a warning about the size of that message helps nobody.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return dask.compute(task)[0]
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise MemoryError(
                "Workers died over and over on the same chunk of X, most likely for want of memory; give them more, or "
                "make the chunks smaller with X.rechunk."
            ) from error
        raise


def send(message: Any) -> Any:
    """Something that every task needs, as a task of its own: it travels once, and the scheduler keeps it.

    Scattered to the workers it would be lost with them, and a worker that dies during the scattering stops everything.
    """
    return dask.delayed(message, name=f"message-{uuid.uuid4().hex}", traverse=False)
