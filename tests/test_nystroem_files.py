"""Landmarks and features of rows that are not in memory."""

import numpy as np
import pytest
from commands import done

from quickmeans import QKNystroem, load
from quickmeans.nystroem.choice import CHOICES

rng = np.random.default_rng(0)
X = (np.repeat(rng.standard_normal((12, 6)), 50, axis=0) + 0.3 * rng.standard_normal((600, 6))).astype(np.float32)


@pytest.fixture(autouse=True)
def _blocks(monkeypatch):
    monkeypatch.setattr("quickmeans.data.source.CHUNK_BYTES", 100 * X[0].nbytes)


@pytest.mark.parametrize("landmarks", CHOICES)
def test_every_choice_of_landmarks(tmp_path, landmarks):
    np.save(tmp_path / "rows.npy", X)
    model = QKNystroem(n_components=20, gamma="scale", landmarks=landmarks, random_state=0)
    from_file = model.fit(tmp_path / "rows.npy").approximation_error(X)
    features = model.transform(tmp_path / "rows.npy")
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, model.transform(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.kernel_row(tmp_path / "rows.npy"), model.kernel_row(X), rtol=1e-5, atol=1e-6)
    assert abs(model.approximation_error(tmp_path / "rows.npy") - from_file) < 1e-6
    in_memory = model.fit(X).approximation_error(X)
    assert abs(from_file - in_memory) < 0.15 * in_memory + 1e-3
    if landmarks in ("uniform", "leverage"):
        assert from_file == in_memory  # the same rows


def test_rows_of_a_function_and_other_types():
    whole = (20 * X).astype(np.int16)
    model = QKNystroem(n_components=20, gamma="scale", random_state=0).fit(lambda: np.array_split(whole, 5))
    np.testing.assert_allclose(model.transform(lambda: np.array_split(whole, 3)), model.transform(whole), rtol=1e-6)
    assert model.gamma_ == pytest.approx(QKNystroem(gamma="scale").fit(whole).gamma_)


def test_wrong_rows(tmp_path):
    rows = X.copy()
    rows[345, 2] = np.inf
    np.save(tmp_path / "rows.npy", rows)
    model = QKNystroem(n_components=10).fit(X)
    for use in (model.transform, model.fit):
        with pytest.raises(ValueError, match=r"infinity \(row 345 of .*rows.npy, column 2\)"):
            use(tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", X[:, :4])
    with pytest.raises(ValueError, match="4 columns, but the model was fitted to 6"):
        model.transform(tmp_path / "rows.npy")


def test_the_command_reads_large_files_block_by_block(here, monkeypatch):
    monkeypatch.setattr("quickmeans.cli.data.MEMORY_LIMIT", 100)
    done("nystroem", "fit", "rows.npy", "-k", 12, "--gamma", "scale", "--seed", 0, "-o", "kernel")
    assert load("kernel").approximation_error(np.load("rows.npy")) < 0.1
    done("index", "build", "rows.npy", "--seed", 0, "-o", "index")
    assert load("index").n_samples_fit_ == 300
