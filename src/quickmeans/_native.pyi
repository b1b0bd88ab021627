from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Compressed sparse rows as (n_columns, indptr, indices, values), or a dense matrix.
_Factor = tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]] | NDArray[Any]

def instruction_sets() -> list[str]: ...
def fit_supports(
    gram: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[Any],
    drop: NDArray[Any],
    support: NDArray[Any],
    values: NDArray[Any],
    prices: NDArray[Any] | None,
    n_threads: int,
    isa: str = "",
) -> None: ...
def add_members(
    x: NDArray[Any],
    members: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[Any] | None,
    sums: NDArray[Any],
    n_threads: int,
    isa: str = "",
) -> None: ...
def moments(
    x: NDArray[Any],
    weights: NDArray[Any] | None,
    shift: NDArray[Any],
    sums: NDArray[Any],
    squares: NDArray[Any],
    n_threads: int,
    isa: str = "",
) -> None: ...
def seed(
    points: NDArray[Any],
    residuals: NDArray[Any],
    weights: NDArray[Any],
    first: int,
    uniforms: NDArray[Any],
    chosen: NDArray[Any],
    isa: str = "",
) -> int: ...

class Entries:
    def __init__(self, S: NDArray[Any], most: int, isa: str = "") -> None: ...
    def __len__(self) -> int: ...
    def norm(self) -> float: ...
    def scaled(self, c: float) -> Entries: ...
    def put(self, out: NDArray[Any]) -> None: ...
    def times(self, X: NDArray[Any], out: NDArray[Any], transposed: bool) -> None: ...
    def refine(
        self,
        P: NDArray[Any] | None,
        diagonal: NDArray[Any],
        G: NDArray[Any] | None,
        M: NDArray[Any],
        row_curvature: NDArray[Any],
        column_curvature: NDArray[Any],
        n_steps: int,
    ) -> tuple[float, float]: ...

def mark_largest(M: NDArray[Any], per_row: int, per_column: int, kept: NDArray[Any]) -> None: ...
def match_largest(M: NDArray[Any], per_row: int, per_column: int, kept: NDArray[Any]) -> None: ...
def smallest(M: NDArray[Any], values: NDArray[Any], columns: NDArray[Any]) -> None: ...
def masked_product(
    rows: NDArray[Any], atoms: NDArray[Any], support: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...

class _Product:
    def __init__(self, factors: list[_Factor], isa: str = "") -> None: ...
    def apply(self, x: NDArray[Any], out: NDArray[Any], n_threads: int) -> None: ...
    def apply_one(self, x: NDArray[Any], out: NDArray[Any]) -> None: ...
    def nearest(
        self,
        x: NDArray[Any],
        offset: NDArray[Any],
        largest_offset: float,
        labels: NDArray[Any],
        scores: NDArray[Any],
        n_threads: int,
    ) -> int: ...
    def nearest_centers(
        self,
        x: NDArray[Any],
        offset: NDArray[Any],
        centers: NDArray[Any],
        center_offset: NDArray[Any],
        n_listed: int,
        labels: NDArray[Any],
        scores: NDArray[Any],
        largest_offset: float,
        growth: float,
        n_threads: int,
    ) -> int: ...
    def settle(
        self,
        x: NDArray[Any],
        projected: NDArray[Any] | None,
        index: NDArray[Any] | None,
        offset: NDArray[Any],
        mean: NDArray[Any],
        centers: NDArray[Any],
        center_offset: NDArray[Any],
        slack: NDArray[Any],
        reach: float,
        shortlist: int,
        settle_all: bool,
        norms_known: bool,
        norms: NDArray[Any],
        labels: NDArray[Any],
        best: NDArray[Any],
        second: NDArray[Any],
        largest_offset: float,
        growth: float,
        n_threads: int,
    ) -> tuple[int, int, int]: ...
    @property
    def isa(self) -> str: ...

class Product32(_Product): ...
class Product64(_Product): ...

def gaussian(
    product: Product32 | Product64,
    x: NDArray[Any],
    mean: NDArray[Any],
    offset: NDArray[Any],
    largest_offset: float,
    gamma: float,
    out: NDArray[Any],
    n_threads: int,
) -> int: ...
def group_by_label(
    labels: NDArray[Any], n_labels: int, order: NDArray[np.int64], starts: NDArray[np.int64]
) -> None: ...

class _Assignment:
    def __init__(
        self,
        labels: NDArray[np.int32],
        best: NDArray[Any],
        second: NDArray[Any],
        norms: NDArray[Any],
        norms_known: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    @property
    def best(self) -> NDArray[Any]: ...
    @property
    def second(self) -> NDArray[Any]: ...
    @property
    def norms(self) -> NDArray[Any]: ...
    norms_known: bool
    n_listed: int
    n_settled: int

class Assignment32(_Assignment): ...
class Assignment64(_Assignment): ...

class _Screen:
    @classmethod
    def bind(
        cls,
        product: Product32 | Product64 | None,
        centers: NDArray[Any],
        mean: NDArray[Any],
        offset: NDArray[Any],
        center_offset: NDArray[Any],
        slack: NDArray[Any],
        margin: float,
        shortlist: int,
        isa: str = "",
    ) -> Self: ...
    def with_margin(self, margin: float, offset: NDArray[Any] | None, shortlist: int | None) -> Self: ...
    def assign(
        self,
        x: NDArray[Any],
        assignment: Assignment32 | Assignment64,
        first: int,
        index: NDArray[np.int64] | None,
        projected: NDArray[Any] | None,
        exact_scores: bool,
        n_threads: int,
    ) -> int: ...
    def nearest(
        self, x: NDArray[Any], n_listed: int, labels: NDArray[np.int64], scores: NDArray[Any], n_threads: int
    ) -> int: ...
    @property
    def margin(self) -> float: ...
    @property
    def shortlist(self) -> int: ...

class Screen32(_Screen): ...
class Screen64(_Screen): ...
