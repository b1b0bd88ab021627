"""Results of sixty small cases, to be the same before and after a change of the code that should not change them.

``python tests/recording.py`` compares them with what is recorded, on every instruction set of this machine or on the
one that QUICKMEANS_ISA names; ``python tests/recording.py --write`` records them anew. How: see `recorded.py`.
"""

import argparse
import gzip
import os
import pickle
import sys
import warnings
from contextlib import suppress

import dask
import dask.array as da
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import recorded
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from quickmeans import QKMeans, QKNeighbors, QKNeighborsTransformer, QKNystroem, load
from quickmeans.data import open_rows
from quickmeans.kernels import instruction_sets
from quickmeans.transform import factorize, hierarchical_palm4msa, palm4msa, sparse_als

# ---- rows -----------------------------------------------------------------------------------------------------------


def mixture(n, D, n_centers=40, seed=0, dtype=np.float32, noise=4):
    """Rows about centres near a subspace, of no BLAS; another seed gives other rows about the same centres."""
    places, rng = np.random.default_rng(D), np.random.default_rng(seed)
    centers = places.integers(-8, 9, (n_centers, 24)) @ places.integers(-8, 9, (24, D)) / 32
    return (centers[rng.integers(n_centers, size=n)] + noise * rng.standard_normal((n, D)) + 3).astype(dtype)


def sparse(n, seed=0):
    """Rows that are mostly zero, and none all zero."""
    rows = mixture(n, 40, seed=seed)
    rows[:, 1:][rows[:, 1:] < 8] = 0
    return sp.csr_array(rows)


X, NEW = mixture(1500, 20), mixture(200, 20, seed=1)
X64, NEW64 = X.astype(np.float64), NEW.astype(np.float64)
# Ten rows about each of 150 centres: with less noise, so that rounding does not decide which clusters are found.
WIDE, NEW_WIDE = mixture(1500, 200, 150, noise=1), mixture(200, 200, 150, seed=1, noise=1)
WEIGHTS = np.random.default_rng(2).integers(0, 5, 1500) / 4  # a fifth of them zero

# ---- QKMeans: what is recorded of it --------------------------------------------------------------------------------


def fit(rows=X, n_clusters=30, weights=None, **options):
    """A fitted model, of few clusters and without a screen unless the options say otherwise."""
    model = QKMeans(n_clusters, **{"random_state": 0, "max_iter": 8} | options)
    return model.fit(rows, sample_weight=weights)


def fit_screened(rows=WIDE, **options):
    """A fitted model of so many clusters in so many dimensions that a product of low rank screens them."""
    return fit(rows, 150, **{"max_iter": 6} | options)


def clusters(model):
    names = ("cluster_centers_", "labels_", "inertia_", "objective_history_", "n_iter_")
    return {name: getattr(model, name) for name in names}


def used(model, rows=NEW):
    """The clusters, and what is made of other rows."""
    return clusters(model) | {
        "predict": model.predict(rows),
        "predict exact": model.predict(rows, exact=True),
        "transform": model.transform(rows),
        "score": model.score(rows),
    }


def prefixed(**parts):
    return {f"{prefix} {name}": value for prefix, part in parts.items() for name, value in part.items()}


# ---- QKMeans: rows in memory ----------------------------------------------------------------------------------------


def large(**options):
    """So many numbers that all of the native code uses threads."""
    return used(fit(mixture(4000, 300, 250), 200, max_iter=6, **options), mixture(200, 300, 250, seed=1))


def weights(folder):
    model, screened = fit(weights=WEIGHTS), fit_screened(weights=WEIGHTS)
    score = {"weighted score": model.score(X, sample_weight=WEIGHTS)}
    return prefixed(few=used(model) | score, screened=used(screened, NEW_WIDE))


def spherical(folder):
    few, screened = fit(metric="cosine", weights=WEIGHTS), fit_screened(metric="cosine")
    return prefixed(few=used(few), screened=used(screened, NEW_WIDE))


def duplicates(folder):
    """There are fewer different rows than clusters, which is a warning. Sums of them are exact."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = fit(np.repeat(np.round(X[:16]), 16, axis=0))
    return used(model) | {"warnings": len(caught)}


def some_rows(rows, n_clusters, random_state):
    return rows[random_state.permutation(len(rows))[:n_clusters]]


def equal_start(folder):
    """At first all clusters but one are empty; they get rows."""
    same = np.repeat(X[:1], 30, axis=0)
    np.save(folder / "x.npy", X)
    return prefixed(
        memory=used(fit(init=same, weights=WEIGHTS)),
        file=used(fit(folder / "x.npy", init=same)),
        product=used(fit(init=same, shortlist=0, compression=3)),
        dask=on_dask(init=same),
    )


def sampled_start(folder):
    """So many rows that the first iterations are on a sample of them."""
    rows, new, most = mixture(10_000, 16), mixture(200, 16, seed=1), np.arange(10_000) % 5 > 0
    np.save(folder / "x.npy", rows)
    return prefixed(
        memory=used(fit(rows, max_iter=3), new),
        weights=used(fit(rows, max_iter=3, weights=most, metric="cosine"), new),
        random=used(fit(rows, max_iter=2, init="random", n_init=2), new),
        file=used(fit(folder / "x.npy", max_iter=3, weights=most), new),
        batches=used(fit(rows, max_iter=2, batch_size=1000), new),
    )


def compressed_screen(folder):
    some, one = fit_screened(compression=4, max_iter=3), fit_screened(compression=4, max_iter=3, shortlist=1)
    return prefixed(some=used(some, NEW_WIDE), one=used(one, NEW_WIDE))


def product_by(solver, **options):
    rows, new = mixture(1000, 32), mixture(200, 32, seed=1)
    return used(fit(rows, 16, solver=solver, shortlist=0, max_iter=4, **options), new)


# ---- QKMeans: mini-batches, checkpoints, models in files ------------------------------------------------------------


def mini_batches(folder):
    np.save(folder / "x.npy", X)
    options = {"batch_size": 200, "max_iter": 4}
    return prefixed(
        memory=used(fit(**options)),
        file=used(fit(folder / "x.npy", weights=WEIGHTS, **options)),
        screened=used(fit_screened(**options), NEW_WIDE),
        spherical=used(fit(metric="cosine", **options)),
        product=used(fit(shortlist=0, compression=3, **options)),
    )


def partial_fits(folder):
    model, results = QKMeans(30, random_state=0, batch_size=150), {}
    for begin in range(0, 1500, 500):
        part = slice(begin, begin + 500)
        model.partial_fit(X[part], sample_weight=WEIGHTS[part] if begin == 500 else None)
        results[f"from {begin}"] = used(model)
    return prefixed(**results)


def followed(rows, other, **options):
    """A model of some rows that then sees others, again and again."""
    model = QKMeans(random_state=0, **options).partial_fit(rows)
    for _ in range(4):
        model.partial_fit(other)
    return used(model, other[:200])


def partial_fits_elsewhere(folder):
    return prefixed(
        few=followed(X, X + 50, n_clusters=30),
        screened=followed(WIDE, 2 * WIDE[:, ::-1], n_clusters=150),
        product=followed(X, X[:, ::-1], n_clusters=30, shortlist=0, compression=3),
    )


class Killed(Exception):
    pass


def kill(iteration, objective):
    if iteration == 2:
        raise Killed


def resumed(path, fit=fit, **options):
    """A fit that is killed, and goes on from its checkpoint."""
    options |= {"checkpoint": path, "tol": 0}
    with suppress(Killed):
        fit(callback=kill, **options)
    return fit(**options)


def checkpoints(folder):
    return prefixed(
        few=used(resumed(folder / "few")),
        screened=used(resumed(folder / "screened", fit_screened), NEW_WIDE),
        batches=used(resumed(folder / "batches", batch_size=200, max_iter=4)),
        product=used(resumed(folder / "product", shortlist=0, compression=3, max_iter=5)),
    )


def saved_models(folder):
    screened, product = fit_screened(max_iter=2), fit(shortlist=0, compression=3, max_iter=2)
    screened.save(folder / "screened", labels=True)
    product.save(folder / "product", labels=True)
    return prefixed(
        screened=used(load(folder / "screened"), NEW_WIDE),
        product=used(load(folder / "product")),
        pickled=used(pickle.loads(pickle.dumps(screened)), NEW_WIDE),
    )


# ---- QKMeans: rows elsewhere ----------------------------------------------------------------------------------------


def npy_files(folder):
    files = {"rows": X, "columns": np.asfortranarray(X), "wide": WIDE, "new": NEW}
    paths = {name: folder / f"{name}.npy" for name in files}
    for name, rows in files.items():
        np.save(paths[name], rows)
    model = fit(paths["rows"], weights=WEIGHTS)
    model.predict(paths["new"], output=folder / "labels.npy")
    return prefixed(
        rows=used(model, paths["new"]) | {"written": np.load(folder / "labels.npy")},
        columns=used(fit(paths["columns"])),
        screened=used(fit_screened(paths["wide"]), paths["wide"]),
    )


def file_of_two_chunks(folder):
    path, rows = folder / "x.npy", mixture(36_000, 64, dtype=np.float64)
    np.save(path, rows)
    model = fit(path, 12, max_iter=2, init=rows[:12])
    return clusters(model) | {"predict": model.predict(path), "score": model.score(path)}


def files_of_arrays(folder):
    np.savez(folder / "x.npz", other=X[:3], rows=X)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("train", data=X, chunks=(400, 7))
    with gzip.open(folder / "x.idx.gz", "wb") as file:
        file.write(b"\0\0\x0d\2" + np.array(X.shape, ">u4").tobytes() + X.astype(">f4").tobytes())
    lengths = np.full((len(X), 1), X.shape[1], np.int32)
    np.hstack([lengths, X.view(np.int32)]).tofile(folder / "x.fvecs")
    return prefixed(
        npz=clusters(fit(open_rows(folder / "x.npz", key="rows"))),
        h5=clusters(fit(folder / "x.h5")),
        fvecs=clusters(fit(folder / "x.fvecs")),
        idx=clusters(fit(folder / "x.idx.gz")),
        array=clusters(fit(open_rows(X))),
    )


def tables(folder):
    names = [f"c{j}" for j in range(20)]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    pa.parquet.write_table(table, folder / "x.parquet", row_group_size=400)
    pa.csv.write_csv(table, folder / "x.csv")
    pa.parquet.write_table(pa.table({"v": pa.FixedSizeListArray.from_arrays(X.ravel(), 20)}), folder / "lists.parquet")
    some = open_rows(folder / "x.parquet", columns=names[3:9])
    return prefixed(
        parquet=clusters(fit(folder / "x.parquet")),
        csv=clusters(fit(folder / "x.csv")),
        lists=clusters(fit(folder / "lists.parquet")),
        columns=clusters(fit(some)) | {"sample": some.sample(50, np.random.default_rng(0))},
    )


def function_of_chunks(folder):
    def chunks():
        return (X[begin : begin + 400] for begin in range(0, 1500, 400))

    return used(fit(chunks, weights=WEIGHTS), chunks)


def on_dask(fit=fit, rows=X, new=NEW, **options):
    with dask.config.set(scheduler="threads"):
        model = fit(da.from_array(rows, chunks=(400, 7)), **options)
        return {name: np.asarray(value) for name, value in used(model, da.from_array(new, chunks=70)).items()}


# ---- neighbours, features, factors ----------------------------------------------------------------------------------


def index(rows=X, **options):
    return QKNeighbors(**{"n_lists": 40, "random_state": 0} | options).fit(rows)


def neighbors(found, rows=X, new=NEW):
    """Of many queries; of few, which go another way and find short lists; and of rows of the index."""
    few = found.kneighbors(new[:3], 100, nprobe=1)
    parts = {"many": found.kneighbors(new), "few": few, "own": found.kneighbors(rows)}
    return prefixed(**{name: {"distances": distances, "ids": ids} for name, (distances, ids) in parts.items()})


def neighbors_by_quantizers(folder):
    product = QKMeans(30, shortlist=0, compression=3, random_state=0)
    screened = index(WIDE, n_lists="auto", quantizer=fit_screened(max_iter=2))
    return prefixed(
        screened=neighbors(screened, WIDE, NEW_WIDE),
        product=neighbors(index(n_lists="auto", quantizer=product)),
        nearest=neighbors(index(nprobe=1)),
    )


def within(radius, **options):
    distances, ids = index(**options).radius_neighbors(NEW, radius, sort_results=True)
    sizes = np.array([len(part) for part in ids])
    return {"distances": np.concatenate(distances), "ids": np.concatenate(ids), "sizes": sizes}


def neighbors_within(folder):
    cosine, products = within(0.2, metric="cosine"), within(800.0, metric="inner_product")
    return prefixed(euclidean=within(20.0), cosine=cosine, products=products)


def neighbors_that_come_and_go(folder):
    found = index(X[:1000])
    added = found.add(X[1000:])
    found.remove(np.arange(0, 1500, 3))
    found.save(folder / "index")
    saved, pickled = load(folder / "index"), pickle.loads(pickle.dumps(found))
    return prefixed(here=neighbors(found), saved=neighbors(saved), pickled=neighbors(pickled)) | {"added": added}


def graph(folder):
    found = QKNeighborsTransformer(n_neighbors=4, n_lists=40, random_state=0).fit(X).transform(NEW)
    return {"data": found.data, "indices": found.indices, "indptr": found.indptr}


def nystroem(rows=X, **options):
    return QKNystroem(**{"n_components": 40, "gamma": "mean-distance", "random_state": 0} | options).fit(rows)


def features(model, new=NEW):
    return {
        "transform": model.transform(new),
        "kernel_row": model.kernel_row(new),
        "approximate_kernel": model.approximate_kernel(new[:20], new[20:50]),
        "approximation_error": model.approximation_error(new),
    }


def nystroem_compressed(folder):
    auto, given = (nystroem(WIDE, n_components=100, compression=compression) for compression in ("auto", 5))
    auto.save(folder / "model")
    saved = features(load(folder / "model"), WIDE)
    return prefixed(auto=features(auto, NEW_WIDE), given=features(given, NEW_WIDE), saved=saved)


def nystroem_kernels(folder):
    kernels = {name: name for name in ("polynomial", "sigmoid", "linear", "cosine")}
    kernels |= {"pair": (lambda rows: 1 / (1 + np.abs(rows).sum(axis=1)), lambda t: np.exp(t / 1000))}
    return prefixed(
        **{name: features(nystroem(kernel=kernel, gamma=0.001, n_components=15)) for name, kernel in kernels.items()}
    )


def nystroem_landmarks(folder):
    kinds = {name: name for name in ("kmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard")}
    kinds |= {"given": X[::40], "product": fit(shortlist=0, compression=3)}
    return prefixed(**{name: features(nystroem(landmarks=kind)) for name, kind in kinds.items()})


U = mixture(48, 32, dtype=np.float64)
SIZES = np.arange(48) % 5 + 1.0


def factors(found):
    V = found.product
    return {"toarray": V.toarray(), "history": found.history, "applied": V.apply(np.ones((3, V.shape[1]), V.dtype))}


def factors_by_als(folder):
    two, three = sparse_als(U, 4, weights=SIZES), sparse_als(U.astype(np.float32), 4, n_factors=3)
    return prefixed(two=factors(two), three=factors(three))


def factors_in_closed_form(folder):
    methods = ("auto", "svd", "threshold", "dct", "haar", "hadamard")
    return prefixed(**{method: factors(factorize(U, method, 3)) for method in methods})


def product(folder):
    """What a product of factors does."""
    V, rows = sparse_als(U, 4).product, mixture(300, 32, seed=1)
    labels, distances = V.nearest_rows(rows, 3, return_distance=True)
    return {
        "vector": V @ U[0],
        "matrix": V @ rows.T,
        "transpose": V.T @ SIZES,
        "from the right": SIZES @ V,
        "nearest_rows": labels,
        "distances": distances,
        "gaussian": V.gaussian(rows, 0.001, mean=U[0]),
        "row_norms": V.row_norms(),
    }


# ---- all cases ------------------------------------------------------------------------------------------------------

# Functions of an empty directory that return arrays and numbers by name.
CASES = {
    "float32": lambda _: used(fit(max_iter=100)),
    "float64": lambda _: used(fit(X64, tol=0), NEW64),
    "int16": lambda _: used(fit((16 * X).astype(np.int16)), (16 * NEW).astype(np.int16)),
    "float16": lambda _: used(fit(X.astype(np.float16)), NEW.astype(np.float16)),
    "fortran_order": lambda _: used(fit(np.asfortranarray(X)), np.asfortranarray(NEW)),
    "plane": lambda _: used(fit(mixture(800, 2, 8), 8), mixture(100, 2, 8, seed=1)),
    "one_cluster": lambda _: used(fit(X[:100], 1)),
    "hundred_clusters": lambda _: used(fit(mixture(2000, 64, 120), 100), mixture(200, 64, 120, seed=1)),
    "screen": lambda _: large(),
    "screen_on_one_thread": lambda _: large(n_threads=1),
    "weights": weights,
    "csr": lambda _: used(fit(sparse(1000)), sparse(200, seed=1)),
    "csr_directions": lambda _: used(fit(sparse(1000), weights=WEIGHTS[:1000], metric="cosine"), sparse(200, seed=1)),
    "spherical": spherical,
    "duplicates": duplicates,
    "random_start": lambda _: used(fit(init="random", n_init=2)),
    "given_start": lambda _: used(fit(init=X[:30], tol=0)),
    "equal_start": equal_start,
    "sampled_start": sampled_start,
    "called_start": lambda _: used(fit(init=some_rows, n_init=2)),
    "three_runs": lambda _: used(fit(n_init=3, search="none")),
    "shortlist_of_five": lambda _: large(shortlist=5),
    "compressed_screen": compressed_screen,
    "product_by_als": lambda _: product_by("als", compression=3),
    "product_by_palm4msa": lambda _: product_by("palm4msa", sparsity_level=3),
    "product_by_hierarchy": lambda _: product_by("hierarchical", sparsity_level=3),
    "mini_batches": mini_batches,
    "partial_fits": partial_fits,
    "partial_fits_elsewhere": partial_fits_elsewhere,
    "checkpoints": checkpoints,
    "saved_models": saved_models,
    "npy_files": npy_files,
    "file_of_two_chunks": file_of_two_chunks,
    "files_of_arrays": files_of_arrays,
    "tables": tables,
    "function_of_chunks": function_of_chunks,
    "dask": lambda _: on_dask(),
    "dask_screened": lambda _: on_dask(fit_screened, WIDE, NEW_WIDE, max_iter=3),
    "dask_with_weights": lambda _: on_dask(weights=da.from_array(WEIGHTS, chunks=333), init=X[:30]),
    "dask_spherical": lambda _: on_dask(metric="cosine"),
    "neighbors_euclidean": lambda _: neighbors(index()),
    "neighbors_cosine": lambda _: neighbors(index(metric="cosine")),
    "neighbors_inner_product": lambda _: neighbors(index(metric="inner_product", n_lists="auto", nprobe=5)),
    "neighbors_in_codes": lambda _: prefixed(**{code: neighbors(index(payload=code)) for code in ("sq8", "pq4x4")}),
    "neighbors_by_quantizers": neighbors_by_quantizers,
    "neighbors_within": neighbors_within,
    "neighbors_that_come_and_go": neighbors_that_come_and_go,
    "graph": graph,
    "nystroem": lambda _: features(nystroem()),
    "nystroem_float64": lambda _: features(nystroem(X64, landmarks="uniform"), NEW64),
    "nystroem_csr": lambda _: features(nystroem(sparse(800)), sparse(200, seed=1)),
    "nystroem_compressed": nystroem_compressed,
    "nystroem_kernels": nystroem_kernels,
    "nystroem_landmarks": nystroem_landmarks,
    "factors_by_als": factors_by_als,
    "factors_by_palm4msa": lambda _: factors(palm4msa(U, sparsity_level=4, weights=SIZES, max_iter=40)),
    "factors_by_hierarchy": lambda _: factors(hierarchical_palm4msa(U, sparsity_level=4, max_iter=30)),
    "factors_in_closed_form": factors_in_closed_form,
    "product": product,
}


def results(name, isa):
    """The arrays of a case by name, on one instruction set."""
    return recorded.arrays_of(CASES[name], isa)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record the results")
    if parser.parse_args().write:
        recorded.write({isa: {name: results(name, isa) for name in CASES} for isa in recorded.SETS})
        return 0
    chosen = os.environ.get("QUICKMEANS_ISA")
    n_different = sum(recorded.compare(CASES, isa) for isa in ([chosen] if chosen else instruction_sets()))
    print(f"{n_different} different" if n_different else "All are the same.")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
