"""The same rows in files of every format."""

import gzip

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq

X = (np.arange(60, dtype=np.float32) ** 1.5).reshape(12, 5)


def write_vecs(path, rows, kind):
    with open(path, "wb") as file:
        for row in rows:
            file.write(np.int32(len(row)).tobytes() + row.astype(kind).tobytes())
    return path


def write_idx(path, rows, code, kind, shape):
    with (gzip.open if str(path).endswith(".gz") else open)(path, "wb") as file:
        file.write(bytes([0, 0, code, len(shape)]) + np.array(shape, ">u4").tobytes() + rows.astype(kind).tobytes())
    return path


def table(rows):
    return pa.table({name: rows[:, j] for j, name in enumerate("abcde")})


def parquet_directory(path):
    path.mkdir()
    pq.write_table(table(X[:7]), path / "0.parquet")
    pq.write_table(table(X[7:]), path / "1.parquet")
    return path


def arrow_directory(path):
    path.mkdir()
    feather.write_feather(table(X[:7]), path / "0.arrow", chunksize=3)
    feather.write_feather(table(X[7:]), path / "1.arrow")
    return path


def hdf5(path, rows=X, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("train", data=rows, **options)
        file.create_dataset("test", data=rows[:2])
    return path


def saved(path, save, *arguments, **options):
    save(path, *arguments, **options)
    return path


def write_csv(path):
    np.savetxt(path, X, fmt="%.17g", delimiter=",", header="a,b,c,d,e", comments="")
    return path


MAKERS = {
    "array": lambda d: X,
    "columns first": lambda d: np.asfortranarray(X),
    "foreign bytes": lambda d: X.astype(">f4"),
    "function, foreign bytes": lambda d: lambda: iter([X.astype(">f4")]),
    "memory map": lambda d: np.load(saved(d / "x.npy", np.save, X), mmap_mode="r"),
    "npy": lambda d: saved(d / "x.npy", np.save, X),
    "npy, columns first": lambda d: saved(d / "x.npy", np.save, np.asfortranarray(X)),
    "npy, foreign bytes": lambda d: saved(d / "x.npy", np.save, X.astype(">f4")),
    "npz": lambda d: saved(d / "x.npz", np.savez, X),
    "npz, compressed": lambda d: saved(d / "x.npz", np.savez_compressed, X),
    "parquet": lambda d: saved(d / "x.parquet", lambda p: pq.write_table(table(X), p, row_group_size=5)),
    "parquet directory": lambda d: parquet_directory(d / "parts"),
    "lists": lambda d: saved(d / "x.parquet", lambda p: pq.write_table(pa.table({"v": list(X)}), p)),
    "arrow": lambda d: saved(d / "x.arrow", lambda p: feather.write_feather(table(X), p, compression="uncompressed")),
    "feather, compressed": lambda d: saved(
        d / "x.feather", lambda p: feather.write_feather(table(X), p, compression="lz4", chunksize=5)
    ),
    "arrow, lists": lambda d: saved(
        d / "x.arrow", lambda p: feather.write_feather(pa.table({"v": list(X)}), p, chunksize=5)
    ),
    "arrow directory": lambda d: ds.dataset(arrow_directory(d / "parts"), format="ipc"),
    "dataset": lambda d: ds.dataset(parquet_directory(d / "parts")),
    "hdf5": lambda d: hdf5(d / "x.hdf5"),
    "hdf5, compressed": lambda d: hdf5(d / "x.h5", chunks=(5, 5), compression="gzip"),
    "fvecs": lambda d: write_vecs(d / "x.fvecs", X, "<f4"),
    "idx": lambda d: write_idx(d / "x.idx", X, 0x0D, ">f4", (12, 5)),
    "idx, gzipped": lambda d: write_idx(d / "x-ubyte.gz", X, 0x0D, ">f4", (12, 5)),
    "dataset in memory": lambda d: ds.dataset(table(X)),
    "csv": lambda d: write_csv(d / "x.csv"),
    "function": lambda d: lambda: iter([X[:4], X[4:4], X[4:11], X[11:]]),
}
