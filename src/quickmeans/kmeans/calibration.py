r"""The choice of a screen: which product, and how far it is to be trusted.

A screen costs its multiply-adds and the dense rows of the candidates that it leaves. Both are counted on a sample of
the rows, at the reach that keeps the objective on the sample within `TARGET` of that of an exact assignment, and the
cheapest screen is taken. Screens tried here are projections on the leading singular vectors of the centroids, the
dense form of what `sparse_als` starts from: they cost next to nothing to find and to follow as the centroids move.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quickmeans.kmeans.points import Points, some_rows
from quickmeans.kmeans.screen import CERTAIN, Assignment, Screen
from quickmeans.transform import SparseProduct, sparse_als

TARGET = 4e-4  # how much larger the objective may be than with exact assignment, on the sample
REACHES = (0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, CERTAIN)
RANKS = (8, 16, 32, 48, 64, 96, 128, 192)
_SAMPLE = 8192  # rows, at most
_SAMPLE_ENTRIES = 1 << 21
_ROOM = 64 << 20  # bytes that projected rows may take
_SAMPLE_MACS = 1 << 30  # an exact assignment of the sample costs no more than this: with many centroids it is smaller
# In multiply-adds of a dense product: settling a candidate, every entry of its row, putting it on the list.
_SETTLE, _SETTLE_ENTRY, _LIST = 3000.0, 8.0, 300.0


class Screener:
    """Makes a screen for centroids that move: the first two times by trying, then the same kind again.

    The first centroids are most often rows of X, and a screen for them is no screen for means. With a given compression
    the last screen, which is the one to keep, is a sparse product of that size.
    """

    patience = (
        1.0  # rows per centroid that may pass before mini-batches need the next screen: until then few have moved
    )

    def __init__(
        self,
        points: Points,
        rng: np.random.Generator,
        *,
        shortlist: int = 0,
        compression: float | None = None,
        projects: bool = True,
    ) -> None:
        self.points, self.rng, self.shortlist, self.compression = points, rng, shortlist, compression
        self.projects = projects  # whether all rows are compared with the same screens, and again and again
        most = max(256, min(_SAMPLE, _SAMPLE_ENTRIES // points.X.shape[1]))
        rows = some_rows(points.X, rng.choice(len(points), min(most, len(points)), replace=False))
        self.sample = np.asarray(rows, points.frame.dtype)
        self.basis: NDArray[Any] | None = None
        self.basis_of: NDArray[np.float64] | None = None
        self.rank, self.reach, self.n_calls = 0, CERTAIN, 0
        self.projected: NDArray[Any] | None = None  # all rows in the basis, once that stays as it is

    def __call__(self, centers: NDArray[np.float64], counts: NDArray[np.float64] | None = None) -> Screen:
        """A screen for these centroids, whatever their weights."""
        self.n_calls += 1
        if self.n_calls <= 2:
            screen = self._choose(centers)
            if self.n_calls == 2:
                self._project()
                screen.projected = self.projected
            return screen
        if self.rank == 0:
            return self._dense(centers)
        screen = self._low_rank(centers, self.rank).with_reach(self.reach)
        screen.projected = self.projected
        return screen

    def fresh(self, centers: NDArray[np.float64]) -> Screen:
        """A screen for these centroids alone, which have nothing to do with those that follow."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.basis, other.basis_of, other.rank, other.projects = None, None, 0, False
        return other._choose(centers)

    def state(self) -> tuple[int, float, NDArray[Any] | None]:
        """The kind of screen that has been found, to be given to `restore`."""
        return self.rank, self.reach, self.basis if self.rank else None

    def restore(self, rank: int, reach: float, basis: NDArray[Any] | None) -> None:
        """Take the kind of screen that another one has found for the same rows."""
        self.rank, self.reach, self.basis, self.n_calls = rank, reach, basis, 2

    def keep(self) -> None:
        """Choose no second time: the first centroids were means already."""
        self.n_calls = 2

    def look_again(self) -> None:
        """Choose anew next time, as if for the first: the centroids have gone too far."""
        self.n_calls, self.rank, self.basis, self.basis_of = min(self.n_calls, 1), 0, None, None
        self.rng = np.random.default_rng(len(self.points))  # the same after a fit was killed

    def last(self, screen: Screen, centers: NDArray[np.float64]) -> Screen:
        """The screen to keep, for centroids that have come to rest: a sparse product if that was asked for, and a
        reach for these centroids."""
        if self.compression is not None and _is_possible(self.compression, centers):
            product = sparse_als(centers.astype(self.points.frame.dtype), self.compression).product
            result = Screen(centers, self.points.frame, product, shortlist=self.shortlist)
        else:
            result = Screen(centers, self.points.frame, screen.product, shortlist=self.shortlist)
            result.projected = screen.projected
        if result.product is None:
            return result
        rows = self._sample_for(centers, 0.1)
        result, cost = self._calibrated(result, rows, self._assigned(self._dense(centers), rows))
        return result if cost < np.inf else result.certain()

    def _project(self) -> None:
        """The rows in the basis, if there is room: later passes then read X only where candidates are to be settled."""
        X, dtype = self.points.X, self.points.frame.dtype
        if self.projects and self.rank and isinstance(X, np.ndarray) and len(X) * self.rank * dtype.itemsize <= _ROOM:
            assert self.basis is not None
            basis = SparseProduct([self.basis[:, : self.rank].T.astype(dtype)])
            self.projected = basis.apply(X, n_threads=self.points.n_threads)

    def _sample_for(self, centers: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Rows of the sample, as many as go well with the size of the problem: a share of all rows, if not too few."""
        affordable = min(_SAMPLE_MACS // centers.size, int(share * len(self.points)))
        return self.sample[: max(512, affordable)]

    def _dense(self, centers: NDArray[np.float64]) -> Screen:
        return Screen(centers, self.points.frame, reach=0.0, shortlist=self.shortlist)

    def _low_rank(self, centers: NDArray[np.float64], rank: int) -> Screen:
        assert self.basis is not None
        return Screen.low_rank(centers, self.points.frame, self.basis[:, :rank], shortlist=self.shortlist)

    def _choose(self, centers: NDArray[np.float64]) -> Screen:
        """Try ranks in ascending order until the cost rises; rank 0 stands for the dense centroids."""
        K, D = centers.shape
        best = self._dense(centers)
        lowest = float(best.macs)
        ranks = [r for r in RANKS if self.rank / 2 <= r < lowest / 2 / (K + D)]
        self.rank, self.reach = 0, 0.0
        if not ranks:
            return best
        rows = self._sample_for(centers, 0.02)
        exact, basis = self._assigned(best, rows), self.basis
        for rank in ranks:
            self._prepare_basis(centers, rank)
            screen, cost = self._calibrated(self._low_rank(centers, rank), rows, exact, lowest)
            if cost > lowest and self.rank:
                break
            if cost < lowest:
                best, lowest, basis = screen, cost, self.basis
                self.rank, self.reach = rank, screen.reach
        self.basis = basis  # that of the best; a wider one may have been tried after it
        return best

    def _prepare_basis(self, centers: NDArray[np.float64], rank: int) -> None:
        """At least `rank` leading directions of these centroids: 64, or all that may be asked for."""
        if self.basis is None or self.basis.shape[1] < rank or self.basis_of is not centers:
            width = min(*centers.shape, (64 if rank <= 64 else RANKS[-1]) + 8)
            narrow = centers.astype(self.points.frame.dtype)
            basis = self.basis
            if basis is None or basis.shape[1] < width:
                start = self.rng.standard_normal((centers.shape[1], width)).astype(narrow.dtype)
                basis = leading_directions(narrow, start)
            self.basis, self.basis_of = leading_directions(narrow, basis), centers

    def _calibrated(
        self, screen: Screen, rows: NDArray[np.float64], exact: Assignment, limit: float = np.inf
    ) -> tuple[Screen, float]:
        """The screen with about the least reach that is good enough on the sample, and its cost per row.

        An infinite cost if none is good enough, or none for less than the limit.
        """
        aim = (1 + TARGET) * _objective(exact, screen)
        for i in range(1, len(REACHES), 2):
            tried = screen.with_reach(REACHES[i])
            found = self._assigned(tried, rows)
            if _objective(found, screen) <= aim:
                shorter = screen.with_reach(REACHES[i - 1])
                other = self._assigned(shorter, rows)
                if _objective(other, screen) <= aim:
                    tried, found = shorter, other
                return tried, _cost(tried, found)
            if _cost(tried, found) > limit:
                break
        return screen, np.inf

    def _assigned(self, screen: Screen, rows: NDArray[np.float64]) -> Assignment:
        found = Assignment.empty(len(rows), screen.dtype)
        screen.assign(rows, found, self.points.n_threads)
        return found


def _objective(found: Assignment, screen: Screen) -> float:
    return float(found.squared_distances(screen.frame).sum(dtype=np.float64))


def _cost(screen: Screen, found: Assignment) -> float:
    """Multiply-adds per row: of the screen, and what settling its candidates is worth."""
    settling = (_SETTLE + _SETTLE_ENTRY * screen.centers.shape[1]) * found.n_settled + _LIST * found.n_listed
    return float(screen.macs + settling / len(found.labels))


def _is_possible(compression: float, centers: NDArray[np.float64]) -> bool:
    """Whether at least one number per row and one for the basis are left."""
    K, D = centers.shape
    return bool(K * D / compression >= K + 1)


def leading_directions(centers: NDArray[Any], start: NDArray[Any]) -> NDArray[Any]:
    """One step of subspace iteration towards the leading right singular vectors, in descending order."""
    Q, _ = np.linalg.qr(centers.T @ (centers @ start))
    B = centers @ Q
    _, rotation = np.linalg.eigh(B.T @ B)
    return np.asarray(Q @ rotation[:, ::-1])
