"""Tables as people have them: which columns are read, how text is written, and missing values."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quickmeans import QKMeans
from quickmeans.data import open_rows
from quickmeans.data.reading import Note, Reading
from quickmeans.data.selection import INDEX, LIST, NUMBER, matching, select

NAMES = ["id", "e0", "e1", "e2", "a,b", "x:y"]
KINDS = dict.fromkeys(NAMES, NUMBER) | {"name": "text"}
MEANING = [[1, 2.5, 3], [4, -5, 6]]  # of the tables below


def read(path, **options):
    return np.concatenate(list(open_rows(path, **options).chunks()))


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["e*"], ["e0", "e1", "e2"]),
        (["e?", "id"], ["e0", "e1", "e2", "id"]),
        (["e[02]"], ["e0", "e2"]),
        (["id:e1"], ["id", "e0", "e1"]),
        (["e1:a,b"], ["e1", "e2", "a,b"]),
        (["x:y"], ["x:y"]),
        (["e2", "e*"], ["e2", "e0", "e1"]),
        (None, NAMES),
    ],
)
def test_patterns(patterns, expected):
    assert matching(NAMES, patterns, "t")[1] == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("E1", "t has no column 'E1'; did you mean 'e1'"),
        ("idd", r"did you mean 'id'\?"),
        ("q*", "t has no column 'q.'; it has 'id', 'e0', 'e1', 'e2', 'a,b', 'x:y'"),
        ("e0:e9", "t has no column 'e0:e9'"),
    ],
)
def test_unknown_columns(pattern, message):
    with pytest.raises(ValueError, match=message):
        matching(NAMES, [pattern], "t")


@pytest.mark.filterwarnings("ignore::quickmeans.data.reading.Note")
@given(st.sets(st.sampled_from(NAMES), min_size=1), st.sets(st.sampled_from(NAMES)))
def test_columns_and_exclusions(columns, exclude):
    reading = Reading(sorted(columns), sorted(exclude))
    if columns <= exclude:
        with pytest.raises(ValueError, match="t has no column of numbers to read"):
            select(KINDS, reading, "t")
    else:
        assert select(KINDS, reading, "t") == sorted(columns - exclude)


def test_what_is_left_out():
    with pytest.warns(Note, match="t: columns left out, because they are no numbers: 'name'.$"):
        assert select(KINDS, Reading(), "t") == NAMES
    with pytest.warns(Note, match="because the lists in 'v' are the rows: 'a', 't'"):
        assert select({"a": NUMBER, "v": LIST, "t": "text"}, Reading(), "t") == ["v"]
    assert select({"i": INDEX, "t": "text", "a": NUMBER}, Reading(["i", "a"]), "t") == ["i", "a"]
    for kinds, reading, message in (
        ({"t": "text"}, Reading(), r"t has no column of numbers to read; it has 't' \(text\)"),
        ({"t": "text", "a": NUMBER}, Reading(["a", "t"]), "Column 't' of t holds text, not numbers"),
        ({"v": LIST, "w": LIST}, Reading(), "t has rows in each of the columns 'v', 'w'; choose one"),
        ({"v": LIST, "a": NUMBER}, Reading(["v", "a"]), "The lists in 'v' of t are whole rows; .* without 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            select(kinds, reading, "t")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_ids_are_warned_of(tmp_path, name):
    frame = pd.DataFrame({"id": np.arange(40) * 7 % 41, "n": np.arange(40) % 39, "x": np.linspace(0, 1, 40)})
    write = {"x.csv": frame.to_csv, "x.parquet": frame.to_parquet}[name]
    write(tmp_path / name, index=False)
    with pytest.warns(
        UserWarning, match=r"^Column 'id' of .* looks like an id: .* --exclude id, or exclude=\['id'\] in open_rows"
    ):
        open_rows(tmp_path / name)
    open_rows(tmp_path / name, exclude=["id"])
    open_rows(tmp_path / name, columns=["id", "x"])
    frame[:19].to_csv(tmp_path / "few.csv", index=False)
    open_rows(tmp_path / "few.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "a;b;c\n1;2,5;3\n4;-5;6\n"),
        ("x.csv", "a;b;c\n1;2.5;3\n4;-5;6\n"),
        ("x.csv", "a|b|c\r\n1|2.5|3\r\n4|-5|6\r\n"),
        ("x.csv", "a\tb\tc\n1\t2,5\t3\n4\t-5\t6\n"),
        ("x.tsv", "a\tb\tc\n1\t2.5\t3\n4\t-5\t6\n"),
        ("x.txt", 'a;"b";c\n1;"2,5";3\n\n4;-5;6'),
        ("x.csv", '"a,1";b;"c\n2"\n1;2,5;3\n4;-5,0;6\n'),
    ],
    ids=repr,
)
@pytest.mark.parametrize("packed", [False, True])
def test_dialects_are_found(tmp_path, name, text, packed):
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    np.testing.assert_array_equal(read(path), MEANING)
    np.testing.assert_array_equal(read(path, columns=[open_rows(path).columns[1]]), [[2.5], [-5]])


def test_dialects_can_be_said(tmp_path):
    path = tmp_path / "x.csv"
    np.savetxt(path, MEANING)
    np.testing.assert_array_equal(read(path, header=False), MEANING)
    path.write_text("1:2,5:3\n4:-5:6\n")
    np.testing.assert_array_equal(read(path, separator=":", decimal=",", header=False), MEANING)
    path.write_text("7;8;9\n1;2,5;3\n4;-5;6\n")
    np.testing.assert_array_equal(read(path, header=True), MEANING)
    path.write_bytes("a;b;c\n1;2,5;3\n4;-5;6\n".encode("utf-16"))
    np.testing.assert_array_equal(read(path), MEANING)
    path.write_text("a:b\nx:1\n")
    with pytest.raises(ValueError, match=r"x.csv has no column of numbers to read; it has 'a:b' \(text\)"):
        read(path)


def test_quoted_text_may_have_anything(tmp_path):
    path = tmp_path / "x.csv"
    frame = pd.DataFrame(
        {"t": ['a "b", c', "two\n\nlines", "", "plain"], "x": [1.5, 2, 3, 4], "u": ["\n", ",", '"', ";"]}
    )
    frame.to_csv(path, index=False)
    with pytest.warns(Note, match="left out"):
        rows = open_rows(path)
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), [[1.5], [2], [3], [4]])
    ((chunk, kept),) = rows.tables(["t", "u"])
    assert len(chunk) == 4
    assert kept["t"].to_pylist() == frame["t"].tolist()
    assert kept["u"].to_pylist() == frame["u"].tolist()


@pytest.mark.parametrize("bad", [{"separator": "::"}, {"separator": '"'}, {"decimal": "x"}, {"missing": "zero"}])
def test_bad_readings(tmp_path, bad):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
        open_rows(tmp_path / "x.csv", **bad)
    with pytest.raises(ValueError, match="decimal and separator must differ"):
        open_rows(tmp_path / "x.csv", separator=",", decimal=",")
    with pytest.raises(TypeError, match="columns must be a list"):
        open_rows(tmp_path / "x.csv", columns="a")
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="are for text files"):
        open_rows(tmp_path / "x.parquet", separator=";")


def test_mixed_types_name_the_place(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 5 + "3,unknown\n")
    with pytest.raises(
        ValueError, match=r"Column 'b' holds 'unknown' \(row 5 of .*x.csv\), not a number; mend it, or leave"
    ):
        read(path)
    np.testing.assert_array_equal(read(path, exclude=["b"])[-1], [3])


# ---- missing values -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["x.csv", "x.parquet", "x.npy"])
def holes(request, tmp_path):
    """Rows 1, 2 and 4 of five are complete, of columns a and b."""
    path, whole = tmp_path / request.param, [[np.nan, 2.0], [1, 4], [3, 6], [5, np.nan], [7, 10]]
    if request.param == "x.csv":
        path.write_text("a,b\n,2\n1,4\n3,6\n5,NA\n7,10\n")
    elif request.param == "x.parquet":
        pq.write_table(pa.table({"a": pa.array([None, 1, 3, 5, 7], pa.int64()), "b": [2.0, 4, 6, None, 10]}), path)
    else:
        np.save(path, whole)
    return path


def test_missing_values_are_refused(holes):
    if holes.suffix != ".npy":  # arrays are checked by the fit
        with pytest.raises(ValueError, match=r"no number in column 'a' \(row 0 of .*; fill it, or choose what to do"):
            read(holes)
    with pytest.raises(ValueError, match=r"row 0 of .*x\."):
        QKMeans(2).fit(holes)


def test_missing_values_are_left_out(holes):
    rows = open_rows(holes, missing="drop")
    with pytest.warns(Note, match="2 of 5 rows have missing values and are left out") as given:
        found = [np.concatenate(list(rows.chunks())) for _ in range(2)]
    assert len(given) == 1
    np.testing.assert_array_equal(found, [[[1, 4], [3, 6], [7, 10]]] * 2)
    np.testing.assert_array_equal(rows.take(np.array([2])), [[7, 10]])
    model = QKMeans(2, random_state=0).fit(rows)
    assert model.labels_.shape == (3,)


def test_missing_values_are_filled(holes):
    rows = open_rows(holes, missing="mean")  # 16 / 4 and 22 / 4
    filled = [[4, 2], [1, 4], [3, 6], [5, 5.5], [7, 10]]
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), filled)
    np.testing.assert_array_equal(rows.take(np.array([0, 3])), [[4, 2], [5, 5.5]])


def test_nothing_is_left(tmp_path):
    np.save(tmp_path / "x.npy", [[np.nan, 1.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"All rows of .*x.npy have missing values"):
        read(tmp_path / "x.npy", missing="drop")
    with pytest.raises(ValueError, match=r"Column 0 of .*x.npy holds no values, so it has no mean"):
        read(tmp_path / "x.npy", missing="mean")


def test_models_read_their_own_columns(tmp_path):
    frame = pd.DataFrame({"y": np.r_[0.0, 0, 9, 9], "id": range(4), "x": np.r_[0.0, 1, 0, 1], "t": list("abcd")})
    for name, write in (("x.csv", frame.to_csv), ("x.parquet", frame.to_parquet)):
        write(tmp_path / name, index=False)
        model = QKMeans(2, random_state=0).fit(open_rows(tmp_path / name, columns=["x", "y"]))
        labels = model.predict(tmp_path / name)
        assert labels.tolist() == model.labels_.tolist()
        assert labels[0] == labels[1] != labels[2]
        frame.rename(columns={"x": "xx"})[["xx", "y"]].to_csv(tmp_path / "other.csv", index=False)
        with pytest.raises(ValueError, match=r"other.csv has no column 'x'; did you mean 'xx'\?"):
            model.predict(tmp_path / "other.csv")
