"""What a file holds of a fitted object: facts that JSON can write, and arrays.

An object is saved by making a `State` of it, and loaded by asking a `State` for its parts. The answers may come from a
forged file. So each question names the type and the range of the answer, a ``ValueError`` says what is wrong with it,
and no answer takes time or memory out of proportion to the size of the file.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from reprlib import repr as shortened
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from quickmeans.transform import SparseProduct
from quickmeans.transform.factors import MOST_FACTORS

Number = TypeVar("Number", int, float)
Facts = dict[str, Any]  # what JSON can write
Tensors = dict[str, NDArray[Any]]

UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATING = ("float32", "float64")
_REMOVED = {"sample_start", "spherical"}  # parameters of earlier versions

# A file of at most 20 MB must load in 2 s and 500 MB. A product is expanded to a dense array when it is loaded, which
# takes about 20 bytes per entry with all copies; a row of a factor takes as much as 12 entries (both measured).
_SMALL_FILE = 20_000_000  # bytes
_MOST_ENTRIES = 1 << 24
_ENTRIES_PER_BYTE = 8  # of a larger file; enough for products that are 40 times smaller than the dense array
_ENTRIES_PER_ROW = 12
# The multiply-adds of the expansion, about half a second on two cores. Factors with a side above _WIDE are up to 16
# times slower than others (measured), because a tile of their rows does not fit in the cache.
_MOST_WORK = 1 << 32
_WIDE, _WIDE_COST = 8192, 16


class InvalidModelError(ValueError):
    """A file is not a model, is damaged, or has a format that this version does not know."""


class _Size(NamedTuple):
    """The size of a factor."""

    n_rows: int
    n_columns: int
    n_coefficients: int


@dataclass
class State:
    """The contents of a file: the class of an object, facts about it, and arrays by name."""

    kind: str
    facts: Facts
    tensors: Tensors
    _asked: set[str] = field(default_factory=set, repr=False, compare=False)
    _products: list[SparseProduct] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_bytes(self) -> int:
        """The size of the arrays, which is nearly that of the file."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def expect(self, kind: str) -> None:
        """Refuse the state of another class."""
        if self.kind != kind:
            raise ValueError(f"its class must be {kind}, got {shortened(self.kind)}.")

    # ---- facts ----------------------------------------------------------------------------------------------------

    def number(self, name: str, kind: type[Number], least: Number | None = None, most: Number | None = None) -> Number:
        """A finite number of that type, and in that range; a whole number is a float too."""
        value = self.facts.get(name)
        if kind is float and type(value) is int and is_storable(value):
            value = float(value)
        if type(value) is not kind or not is_storable(value):
            raise ValueError(f"{name} must be a finite {kind.__name__}, got {shortened(value)}.")
        if (least is not None and value < least) or (most is not None and value > most):
            limits = f"at least {least}" if most is None else f"between {least} and {most}"
            raise ValueError(f"{name} must be {limits}, got {shortened(value)}.")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.facts.get(name)
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, got {shortened(value)}.")
        return value

    def choice(self, name: str, options: Collection[str]) -> str:
        """One of these strings."""
        value = self.facts.get(name)
        if not isinstance(value, str) or value not in options:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {shortened(value)}.")
        return value

    def dtype(self, name: str) -> np.dtype[Any]:
        """The name of a floating type."""
        return np.dtype(self.choice(name, FLOATING))

    def feature_names(self, n_features: int) -> dict[str, NDArray[Any]]:
        """The fitted attribute `feature_names_in_`, by name; nothing if the file has no names."""
        names = self.facts.get("feature_names_in")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("feature_names_in must be a list of strings.")
        if len(names) not in (0, n_features):
            raise ValueError(f"there must be {n_features} feature names, or none, got {len(names)}.")
        return {"feature_names_in_": np.array(names, dtype=object)} if names else {}

    def parameters(self, known: Collection[str], strings: Collection[str] = ()) -> dict[str, Any]:
        """The parameters of the estimator, which must be among `known`; some of them must be strings."""
        given = self.facts.get("parameters")
        if not isinstance(given, dict) or not all(map(is_storable, given.values())):
            raise ValueError("parameters must be finite numbers, strings or null.")
        if given.get("spherical") is True:
            given = given | {"metric": "cosine"}
        given = {name: value for name, value in given.items() if name not in _REMOVED}
        unknown = given.keys() - set(known)
        if unknown:
            raise ValueError(
                f"quickmeans {version('quickmeans')} knows no parameter {shortened(min(unknown))}; "
                f"the file says that it is from version {shortened(self.facts.get('library_version'))}."
            )
        for name in given.keys() & set(strings):
            if not isinstance(given[name], str):
                raise ValueError(f"{name} must be a string, got {given[name]!r}.")
        if not isinstance(given.get("random_state"), int | None):
            raise ValueError(f"random_state must be a whole number or null, got {given['random_state']!r}.")
        return given

    # ---- arrays ---------------------------------------------------------------------------------------------------

    def tensor(self, name: str, n_axes: int, dtypes: Collection[str]) -> NDArray[Any]:
        """The array of that name, with finite numbers."""
        if name not in self.tensors:
            raise ValueError(f"it must have a tensor {name!r}.")
        self._asked.add(name)
        tensor = self.tensors[name]
        if tensor.dtype.name not in dtypes or tensor.ndim != n_axes:
            raise ValueError(f"{name} must have {n_axes} axes and dtype {' or '.join(dtypes)}.")
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ValueError(f"{name} must be finite.")
        return tensor

    def product(
        self, n_columns: int, dtype: np.dtype[Any], prefix: str = "factors", count: str = "n_factors"
    ) -> SparseProduct | None:
        """The product whose factors have this prefix and this type; None if it has no factors."""
        n_factors = self.number(count, int, 0, MOST_FACTORS)
        names = [f"{prefix}.{q}" for q in range(n_factors)]
        sizes: list[_Size] = []
        for name in reversed(names):  # the rows of a factor are the columns of the one to its left
            sizes.insert(0, self._size(name, sizes[0].n_rows if sizes else n_columns, dtype))
        if not sizes:
            return None
        if prefix == "factors":
            self._check_shapes(sizes)
        if not _are_affordable(sizes, self.n_bytes):
            shape = (sizes[0].n_rows, n_columns)
            raise ValueError(f"its product of shape {shape} must not take so much more memory or time than its file.")
        return SparseProduct([self._factor(name, size) for name, size in zip(names, sizes, strict=True)])

    def _check_shapes(self, sizes: list[_Size]) -> None:
        """Refuse shapes that are not those of the factors; files of earlier versions have none."""
        name, shapes = "factors_shapes", [[size.n_rows, size.n_columns] for size in sizes]
        if self.facts.get(name, shapes) != shapes:
            raise ValueError(f"{name} must be {shortened(shapes)}, got {shortened(self.facts[name])}.")

    def _size(self, name: str, n_columns: int, dtype: np.dtype[Any]) -> _Size:
        if name in self.tensors:
            S = self.tensor(name, 2, (dtype.name,))
            if S.shape[1] != n_columns:
                raise ValueError(f"{name} must have {n_columns} columns.")
            return _Size(S.shape[0], n_columns, S.size)
        n_coefficients = len(self.tensor(f"{name}.data", 1, (dtype.name,)))
        return _Size(len(self.tensor(f"{name}.indptr", 1, UNSIGNED)) - 1, n_columns, n_coefficients)

    def _factor(self, name: str, size: _Size) -> Any:
        """A dense array, or a CSR matrix of indices in range."""
        if name in self.tensors:
            return self.tensors[name]
        indptr, indices = (self.tensor(f"{name}.{part}", 1, UNSIGNED) for part in ("indptr", "indices"))
        data = self.tensors[f"{name}.data"]
        if len(indptr) < 2 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(data):
            raise ValueError(f"{name}.indptr must ascend from 0 to the number of coefficients.")
        if len(indices) != len(data) or (indices >= size.n_columns).any():
            raise ValueError(f"{name}.indices must have one column below {size.n_columns} per coefficient.")
        index = np.int32 if len(data) < 2**31 else np.int64
        return sp.csr_array((data, indices.astype(index), indptr.astype(index)), shape=size[:2])

    def add_product(self, product: SparseProduct | None, prefix: str = "factors", count: str = "n_factors") -> None:
        """Store a product, so that `product` finds it."""
        self.facts[count] = 0 if product is None else len(product.factors)
        if product is not None:
            self._products.append(product)
            if prefix == "factors":  # of a model, which other programs read; checkpoints are for this library only
                self.facts["factors_shapes"] = [list(map(int, S.shape)) for S in product.factors]
            self.tensors |= product_tensors(product, prefix)

    def affords(self, product: SparseProduct) -> bool:
        """Whether a file with these arrays may have this product, which is expanded when it is loaded."""
        sizes = [_Size(S.shape[0], S.shape[1], S.nnz if sp.issparse(S) else S.size) for S in product.factors]
        return len(sizes) <= MOST_FACTORS and _are_affordable(sizes, self.n_bytes)

    def check_loadable(self) -> None:
        """Refuse products that `product` would refuse."""
        for product in self._products:
            if not self.affords(product):
                raise ValueError(
                    f"{product!r} cannot be stored: a product in a file has at most {MOST_FACTORS} factors, and making "
                    "it dense must not take much more memory or time than the size of the file suggests."
                )

    def finish(self) -> None:
        """Refuse arrays that nobody has asked for."""
        unknown = self.tensors.keys() - self._asked
        if unknown:
            raise ValueError(f"it must not have a tensor {shortened(min(unknown))}.")


def _are_affordable(sizes: list[_Size], n_bytes: int) -> bool:
    """Whether the dense array of a product takes memory and time in proportion to a file of so many bytes."""
    n_rows, n_columns = sizes[0].n_rows, sizes[-1].n_columns
    entries = n_rows * n_columns + _ENTRIES_PER_ROW * sum(size.n_rows for size in sizes)
    if n_bytes > _SMALL_FILE:
        return entries <= _ENTRIES_PER_BYTE * n_bytes
    work = sum(
        (size.n_coefficients + size.n_rows) * (_WIDE_COST if max(size.n_rows, size.n_columns) > _WIDE else 1)
        for size in sizes[1:]
    )
    return entries <= _MOST_ENTRIES and n_rows * work <= _MOST_WORK


def product_tensors(product: SparseProduct | None, prefix: str = "factors") -> Tensors:
    """The factors as arrays, by name."""
    tensors: Tensors = {}
    for q, S in enumerate(() if product is None else product.factors):
        name = f"{prefix}.{q}"
        if sp.issparse(S):
            tensors[f"{name}.indptr"] = narrow(S.indptr, S.nnz)
            tensors[f"{name}.indices"] = narrow(S.indices, S.shape[1] - 1)
            tensors[f"{name}.data"] = S.data
        else:
            tensors[name] = S
    return tensors


def narrow(indices: NDArray[Any], largest: int) -> NDArray[Any]:
    """Indices in the smallest unsigned type that can hold `largest`."""
    return indices.astype(np.min_scalar_type(largest))


def is_storable(value: Any) -> bool:
    """Whether it is a finite number, a string or None."""
    if isinstance(value, int | float):
        return abs(value) < (2**63 if isinstance(value, int) else math.inf)
    return value is None or isinstance(value, str)


def storable_parameters(given: Mapping[str, Any], omitted: Collection[str]) -> Facts:
    """The parameters of an estimator that a file can hold: numbers, strings and None.

    Others (arrays, functions, generators), and the omitted ones, have their defaults when the file is loaded.
    """
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    kept = {name: value for name, value in plain.items() if value is None or isinstance(value, str | int | float)}
    for name, value in kept.items():
        if not is_storable(value):
            raise ValueError(f"{name} must be a finite number, a string or None to be stored, got {value!r}.")
    return {name: value for name, value in kept.items() if name not in omitted}
