from typing import Any

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
