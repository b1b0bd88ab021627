"""The examples run, and their results are right."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
CHECKS = {  # name -> check of the names that the example defines
    "patch_codebook": lambda names: names["psnr"] > 22 and Path("codebook.png").stat().st_size > 10_000,
    "nearest_neighbours": lambda names: names["recall"] > 0.93,
    "kernel_features": lambda names: names["scores"]["qkmeans"] > names["scores"]["no kernel"],
    "rows_in_a_file": lambda names: names["count"] == names["N"] and Path("labels.npy").exists(),
    "dask_cluster": lambda names: names["sizes"].sum() == 40_000,
    "paper_algorithm": lambda names: names["models"]["als"].inertia_ < names["models"]["palm4msa"].inertia_,
    "mini_batches": lambda names: (
        names["costs"][14] > 1.2 * names["costs"][13] and names["costs"][-1] < 0.8 * names["costs"][14]
    ),
}


def test_every_example_is_tested_and_shown():
    names = {path.stem for path in FOLDER.glob("*.py")}
    page = (FOLDER.parent / "docs" / "examples.md").read_text("utf-8")
    assert names == set(CHECKS)
    assert all(f"examples/{name}.py" in page for name in names)


@pytest.mark.parametrize("name", CHECKS)
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CHECKS[name](runpy.run_path(str(FOLDER / f"{name}.py")))
