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
def masked_product(
    rows: NDArray[Any], atoms: NDArray[Any], support: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...

class Product32:
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
    @property
    def isa(self) -> str: ...

class Product64:
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
    @property
    def isa(self) -> str: ...
