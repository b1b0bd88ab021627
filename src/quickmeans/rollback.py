"""All or nothing: an estimator whose method fails is as it was before the call."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """Give the estimator its attributes back if the body raises, Ctrl-C included.

    Arrays are not copied: the body must set new ones and not write to those that the estimator has.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
