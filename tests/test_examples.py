"""The examples run, and what they show is so."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
SHOWN = {
    "patch_codebook": lambda found: found["psnr"] > 22 and Path("codebook.png").stat().st_size > 10_000,
    "nearest_neighbours": lambda found: found["recall"] > 0.93,
    "kernel_features": lambda found: found["scores"]["qkmeans"] > found["scores"]["no kernel"],
    "rows_in_a_file": lambda found: found["count"] == found["N"] and Path("labels.npy").exists(),
    "dask_cluster": lambda found: found["sizes"].sum() == 40_000,
    "paper_algorithm": lambda found: found["models"]["als"].inertia_ < found["models"]["palm4msa"].inertia_,
    "mini_batches": lambda found: (
        found["costs"][14] > 1.2 * found["costs"][13] and found["costs"][-1] < 0.8 * found["costs"][14]
    ),
}


def test_every_example_is_tested_and_shown():
    names = {path.stem for path in FOLDER.glob("*.py")}
    page = (FOLDER.parent / "docs" / "examples.md").read_text("utf-8")
    assert names == set(SHOWN)
    assert all(f"examples/{name}.py" in page for name in names)


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert SHOWN[name](runpy.run_path(str(FOLDER / f"{name}.py")))
