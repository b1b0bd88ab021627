r"""Moves that leave bad optima: priced swaps, and breathing.

The price of a centroid is what its removal would add to the objective, and the gain of a cluster is what two means of
its own rows would save:

.. math:: R_k = \sum_{i \in k} w_i (d_2(x_i)^2 - d_1(x_i)^2), \qquad
          G_k = \sum_{i \in k} w_i \Bigl(d_1(x_i)^2 - \min_{a \in \{a_1, a_2\}} \|x_i - a\|^2\Bigr),

with d_1 and d_2 the distances of a row to its nearest two centroids, and a_1 and a_2 the two means.

A round of swaps takes cheap centroids away and splits clusters of larger gain, all at once, and iterates a little.
Where clusters overlap, neighbours adjust to a move, and neither price nor gain tells what it is worth. So breathing
(Fritzke, 2020) tries: it adds several centroids, iterates, removes as many of the cheapest, and iterates again. Every
move is kept only if the objective fell, so the search never ends worse than it began.
"""

from collections.abc import Callable

from quickmeans import kernels
from quickmeans.kmeans.settings import Effort, Settings

_SETTLE = 3  # iterations after swaps, before the objective is looked at
_INHALED, _EXHALED = 4, 6  # iterations after centroids were added, and after some were removed
_BREATH = 8  # one centroid in so many is added in the first breath,
_FEW = 5  # or so many, as in Fritzke's paper, if that is more
_LEAST_GAIN = 1e-4  # a breath that lowers the objective by a smaller share is followed by a smaller one
_LOCAL = 1.5  # passes with many clusters for one with few: they are short, and every round still pays
_ROUNDING = 1e-6  # a move that lowers the objective by a smaller share is taken back

Observer = Callable[[str, float], object]  # gets what was done and the objective; a true result ends the search


def improve(search: kernels.Search, effort: Effort, tol: float, observe: Observer) -> bool:
    """Move centroids while that pays and there is work left to spend; a move that has begun is finished.

    Parameters
    ----------
    search : kernels.Search
        After some iterations.
    effort : Effort
    tol : float
        Squared shifts of the centroids that end an iteration.
    observe : callable
        Called after every move that is kept.

    Returns
    -------
    bool
        Whether the observer asked to stop.
    """
    least, most = effort.work
    limit = search.work + min(max(effort.passes * search.pass_work, least), most)
    ended = swap(search, limit, observe)
    return ended or (effort.patience > 0 and _breathe(search, limit, effort.patience, tol, observe))


def improve_locally(search: kernels.LocalSearch, settings: Settings, observe: Observer) -> bool:
    """The same for many clusters: rounds of swaps only, which have many centroids to move at once.

    Swaps are followed by at most as many iterations as the fit has. Ctrl-C leaves the centroids as they were before the
    move that it ended.
    """
    settle = min(_SETTLE, settings.max_iter)
    search.keep()
    try:
        search.iterate(settle)
        return swap(search, search.work + _LOCAL * settings.effort.passes * search.pass_work, observe, settle)
    except KeyboardInterrupt:
        search.go_back()
        raise


def swap(search: kernels.Clusters, limit: float, observe: Observer, settle: int = _SETTLE) -> bool:
    """Rounds of swaps while there is work left; after one that does not pay, half as many."""
    most = search.n_centers
    search.keep()
    while most and search.objective > 0 and search.work < limit:
        before = search.objective
        count = search.swap(most)
        if not count:
            return False
        search.iterate(settle)
        if _fell(search, before):
            most = search.n_centers
            search.keep()
            if observe(f"{count} swaps", search.objective):
                return True
        else:
            search.go_back()
            most = count // 2
    return False


def _breathe(search: kernels.Search, limit: float, patience: float, tol: float, observe: Observer) -> bool:
    """Breaths, smaller ones after one that hardly pays."""
    K = search.n_centers
    size = max(min(_FEW, K), K // _BREATH)
    search.keep()
    while size and search.objective > 0 and search.work < limit:
        before = search.objective
        added = search.grow(size)
        search.iterate(_INHALED, tol)
        search.shrink(added)
        search.iterate(_EXHALED, tol)
        paid = _fell(search, before)
        if search.objective > (1 - _LEAST_GAIN) * before:
            size = int(patience * size)
        if not paid:
            search.go_back()
            continue
        search.keep()
        if observe(f"a breath of {added}", search.objective):
            return True
    return False


def _fell(search: kernels.Clusters, before: float) -> bool:
    return search.objective < (1 - _ROUNDING) * before
