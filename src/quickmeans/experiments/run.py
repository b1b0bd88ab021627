"""A run of the experiments: where the data and the results are, which sizes and seeds are measured."""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from rich.console import Console

from quickmeans.experiments.data import IMAGES, Split, load, missing
from quickmeans.experiments.results import Results, Row

SEEDS, QUICK_SEEDS = 5, 2
# quick or not -> numbers of clusters, as in the paper if not
BLOB_CLUSTERS = {False: (128, 256, 512), True: (32, 64, 128)}
IMAGE_CLUSTERS = {False: (10, 16, 30), True: (10, 30)}


@dataclass(eq=False)
class Run:
    """The directories of results and data, and the extent of the run."""

    directory: Path
    data: Path | None = None
    quick: bool = False
    force: bool = False
    console: Console = field(default_factory=Console)

    @property
    def seeds(self) -> range:
        """One seed for every repetition."""
        return range(QUICK_SEEDS if self.quick else SEEDS)

    def split(self, name: str) -> Split:
        """Return a data set; the last one is kept in memory."""
        return _load(name, self.data, self.quick)

    def images(self) -> list[str]:
        """Return the image data sets whose files exist, or else scikit-learn's digits."""
        return [name for name in IMAGES if not missing(name, self.data)] or ["digits"]

    def seeded(self, cases: list[Row]) -> list[Row]:
        """Return each case with every seed."""
        return [{**case, "seed": seed} for case in cases for seed in self.seeds]

    def blob_cases(self) -> list[Row]:
        """Return Blobs with every number of clusters and every seed."""
        return self.seeded([{"data": "blobs", "K": K} for K in BLOB_CLUSTERS[self.quick]])

    def image_cases(self) -> list[Row]:
        """Return every image data set with every number of clusters and every seed."""
        return self.seeded([{"data": name, "K": K} for name in self.images() for K in IMAGE_CLUSTERS[self.quick]])

    def results(self, name: str) -> Results:
        """Return what has been measured of an experiment."""
        return Results(self.directory / f"{name}.csv")


@lru_cache(maxsize=1)
def _load(name: str, folder: Path | None, quick: bool) -> Split:
    return load(name, folder, quick=quick)
