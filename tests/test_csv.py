"""CSV files: what is read, what is refused, and wide tables."""

import time

import numpy as np
import pytest

from quickmeans.data import open_rows, source
from quickmeans.data.reading import Note
from quickmeans.data.stream import StreamRows


def read(path, **options):
    return np.concatenate(list(open_rows(path, **options).chunks()))


def test_csv(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2.5\n3,4\n5,6\n")
    rows = open_rows(tmp_path / "x.csv")
    assert rows.n_rows is None
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), [[1, 2.5], [3, 4], [5, 6]])
    assert StreamRows(rows).shape == (3, 2)
    np.testing.assert_array_equal(np.concatenate(list(open_rows(tmp_path / "x.csv", columns=["b"]).chunks())).T,
                                  [[2.5, 4, 6]])  # fmt: skip


def test_csv_without_names(tmp_path):
    path = tmp_path / "x.csv"
    for text in (
        "1,2.5\n3,4\n",
        "1;2.5\n3;4\n",
        "1;2,5\n3;4\n",
        "\ufeff1\t2.5\n3\t4\n",
        '"1","2.5"\n3,4\n',
        "\n1|2.5\n3|4\n",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.warns(Note, match="x.csv has no line of names; its columns are called column_1, column_2"):
            assert open_rows(path).columns == ["column_1", "column_2"]
        np.testing.assert_array_equal(read(path, header=False), [[1, 2.5], [3, 4]])
    path.write_text('"a;b"\n1\n2\n')  # one column, of that name
    np.testing.assert_array_equal(np.concatenate(list(open_rows(path).chunks())), [[1], [2]])
    path.write_text("0,1\n3,4\n")  # names that pandas gives
    np.testing.assert_array_equal(np.concatenate(list(open_rows(path).chunks())), [[3, 4]])
    np.testing.assert_array_equal(read(path, header=False), [[0, 1], [3, 4]])
    path.write_text("a,b\n1,\n3,\n")
    with pytest.warns(Note, match="they are no numbers: 'b'"):
        np.testing.assert_array_equal(read(path), [[1], [3]])
    with pytest.raises(ValueError, match=r"Column 'b' of .* holds no values, not numbers; choose columns"):
        open_rows(path, columns=["b"])


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\n\na,b\n\n1,2\n\n\n3,4",
        "\ufeffa,b\n1,2\n3,4\n",
        'a,"b"\n"1",2\n3,"4"\n',
        '"a\nb",c\n 1, 2 \n3,+4.0\n',
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_bytes", [1, 1 << 20])
def test_ways_to_write_the_same_table(tmp_path, monkeypatch, text, n_bytes):
    monkeypatch.setattr(source, "CHUNK_BYTES", n_bytes)
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8", newline="")
    rows = open_rows(path)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(rows.take(np.array([1, 1])), [[3, 4], [3, 4]])
    np.testing.assert_array_equal(read(path, columns=rows.columns[:0:-1]), [[2], [4]])


def test_columns_of_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes('id,name,x\n1,"a,b",2.5\n2,"c ""d""",-1e3\n3,\u00e9,0\n'.encode("latin-1"))
    np.testing.assert_array_equal(read(path, columns=["x", "id"]), [[2.5, 1], [-1000, 2], [0, 3]])
    with pytest.warns(Note, match=r"x.csv: columns left out, because they are no numbers: 'name'\.$"):
        np.testing.assert_array_equal(read(path), [[1, 2.5], [2, -1000], [3, 0]])
    with pytest.raises(ValueError, match=r"x.csv has no column 'y'; it has 'id', 'name', 'x'\."):
        open_rows(path, columns=["y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a\n1,2\n", "x.csv has 2 columns 'a'; their names must differ"),
        ("a,b\n1,2\n3\n", "row 1 of .*x.csv has 1 values, but the first line has 2"),
        ("a,b\n1,2,3\n4\n", "row 0 of .*x.csv has 3 values, but the first line has 2"),
        ("a,b\n1,2\n3,x\n", r"Column 'b' holds 'x' \(row 1 of .*x.csv\), not a number; mend it, or leave"),
        ("a,b\n1,2\n3,NA\n", r"Input X has no number in column 'b' \(row 1 of .*x.csv\); fill it, or choose"),
        ("a,b\n1,2\n,4\n", r"Input X has no number in column 'a' \(row 1 of .*x.csv\); fill it, or choose"),
        ("a,b\n", "x.csv has no rows after its first line"),
        ("a,b\n\n\n", "x.csv has no rows after its first line"),
        ("\n\n", "x.csv is empty; it must have a line of names"),
        ('"' + "a" * 200_000 + '"\n1\n', "x.csv cannot be read as a table: field larger than"),
        ("a,b\n1," + "2" * 200_000 + "x\n", "x.csv cannot be read as a table: field larger than"),
    ],
    ids=lambda text: repr(text[:20]),
)
@pytest.mark.parametrize("columns", [None, ["a", "b"]])
def test_refused_tables(tmp_path, text, message, columns):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read(path, columns=columns)


def test_whole_numbers_before_a_fraction(tmp_path):
    """The first 200000 rows do not decide on the type."""
    path = tmp_path / "x.csv"
    path.write_text("a\n" + "1234567\n" * 200_000 + "0.5\n")
    rows = read(path)
    assert len(rows) == 200_001
    assert rows[-1] == 0.5


def test_a_wide_table_takes_no_longer_than_a_long_one(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 20_000))
    path = tmp_path / "x.csv"
    np.savetxt(path, X, fmt="%.6f", delimiter=",", header=",".join(f"c{j}" for j in range(X.shape[1])), comments="")
    open_rows(path)  # imports what is needed
    begin = time.perf_counter()
    np.testing.assert_allclose(read(path), X, atol=1e-6)
    assert time.perf_counter() - begin < 3  # 0.2 s; a column at a time took 8 s
