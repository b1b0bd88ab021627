"""A description of a fitted model or index: as plain data for JSON, and as lines for people."""

import os
from glob import escape
from pathlib import Path
from typing import Any

from quickmeans.cli.terminal import counted, print_facts, print_json, seconds, size, sparkline
from quickmeans.cluster import QKMeans
from quickmeans.kernel_approximation import QKNystroem
from quickmeans.neighbors import QKNeighbors
from quickmeans.transform import SparseProduct

Model = QKMeans | QKNeighbors | QKNystroem
Facts = dict[str, Any]
Lines = list[tuple[str, str]]
_SHOWN = 1e-3  # per cent: a history that falls by less is not shown
PRODUCT_ROWS, MEANS = "rows of the product", "exact means"


def print_model(model: Model, path: str | os.PathLike[str], *, as_json: bool, **run: Any) -> None:
    """Print the description of a model in a file, and that of the run that made it."""
    facts = describe(model, path) | run
    if as_json:
        print_json(facts)
    else:
        print_facts(lines(facts))


def describe(model: Model, path: str | os.PathLike[str]) -> Facts:
    """Return the description of a model and the size of its file."""
    if isinstance(model, QKMeans):
        facts = _clustering(model)
    else:
        facts = _features(model) if isinstance(model, QKNystroem) else _index(model)
    parameters = model.get_params(deep=False).items()
    return {
        "kind": type(model).__name__,
        **facts,
        "parameters": {name: v for name, v in parameters if v is None or isinstance(v, str | int | float)},
        "file": os.fsdecode(path),
        "file_bytes": sum(part.stat().st_size for part in _files(Path(path))),
    }


def _files(path: Path) -> list[Path]:
    """Return the file and, for an index, the file of its lists."""
    return [path, *path.parent.glob(f"{escape(path.name)}.{'[0-9a-f]' * 16}.lists")]


def _clustering(model: QKMeans) -> Facts:
    K, D = model.cluster_centers_.shape
    return {
        "clusters": K,
        "features": D,
        "centroids": MEANS if model.assigner_.centers_are_means else PRODUCT_ROWS,
        "dtype": model.cluster_centers_.dtype.name,
        "metric": "cosine" if model.assigner_.geometry.spherical else "euclidean",
        "product": _product(model.product_),
        "exact_distances_per_row": float(model.n_candidates_),
        "objective": float(model.inertia_),
        "iterations": int(model.n_iter_),
        "objective_history": model.objective_history_.tolist(),
        "dense_bytes": model.cluster_centers_.nbytes,
    }


def _features(model: QKNystroem) -> Facts:
    K, D = model.components_.shape
    return {
        "landmarks": K,
        "features": D,
        "kernel": model.kernel_,
        "gamma": float(model.gamma_),
        "dtype": model.components_.dtype.name,
        "product": _product(model.product_),
        "dense_bytes": model.components_.nbytes + model.normalization_.nbytes,
    }


def _index(model: QKNeighbors) -> Facts:
    return {
        "rows": model.n_samples_fit_,
        "features": model.n_features_in_,
        "metric": model.metric_,
        "lists": len(model.quantizer_.cluster_centers_),
        "nprobe": model.nprobe_,
        "recall": model.recall_,
        "payload": model.payload,
        "product": _product(model.quantizer_.product_),
        "dense_bytes": 4 * model.n_samples_fit_ * model.n_features_in_,
    }


def _product(product: SparseProduct | None) -> Facts | None:
    if product is None:
        return None
    factors = [{"shape": list(S.shape), "nnz": int(getattr(S, "nnz", S.size))} for S in product.factors]
    K, D = product.shape
    return {"factors": factors, "nnz": int(product.nnz), "compression": K * D / product.nnz}


def lines(facts: Facts) -> Lines:
    """Return the lines for people: pairs of a name and a text."""
    kind = facts["kind"]
    first = {"QKMeans": _clustering_lines, "QKNystroem": _features_lines}.get(kind, _index_lines)
    result = [*first(facts), *_product_lines(facts["product"])]
    if "objective_history" in facts:
        result += _objective_lines(facts)
    dense = {"QKMeans": "dense centroids", "QKNystroem": "dense landmarks and their normalization"}
    what, bytes_ = dense.get(kind, "the rows in float32"), size(facts["dense_bytes"])
    result.append(("file", f"{size(facts['file_bytes'])}; {what} alone would take {bytes_}"))
    return result + _run_lines(facts)


def _clustering_lines(facts: Facts) -> Lines:
    cosine = ", compared by cosine" if facts["metric"] == "cosine" else ""
    result = [
        ("QKMeans", f"{counted(facts['clusters'], 'cluster')}, {counted(facts['features'], 'feature')}{cosine}"),
        ("centroids", f"{facts['centroids']}, {facts['dtype']}"),
    ]
    if facts["centroids"] == MEANS and facts["product"] is not None:
        result.append(("assignment", f"{facts['exact_distances_per_row']:.2g} exact distances per row"))
    return result


def _features_lines(facts: Facts) -> Lines:
    return [
        ("QKNystroem", f"{facts['landmarks']} landmarks, {facts['features']} features"),
        ("kernel", f"{facts['kernel']}, gamma {facts['gamma']:.4g}"),
    ]


def _index_lines(facts: Facts) -> Lines:
    measured = "not measured"
    if facts["recall"] is not None:
        lost = "" if facts["payload"] == "flat" else f", without what {facts['payload']} loses"
        measured = f"{facts['recall']:.3f}, measured on a sample of the rows{lost}"
    return [
        (facts["kind"], f"{facts['rows']} rows, {facts['features']} features, {facts['metric']}"),
        ("lists", f"{facts['lists']}, {facts['nprobe']} searched per query; payload {facts['payload']}"),
        ("recall", measured),
    ]


def _product_lines(product: Facts | None) -> Lines:
    if product is None:
        return [("product", "none: dense centroids are as fast")]
    fewer = f", {product['compression']:.1f} times fewer than dense" if product["compression"] > 1.05 else ""
    result = [("product", f"{product['nnz']} non-zeros{fewer}")]
    for q, factor in enumerate(product["factors"], 1):
        n, m = factor["shape"]
        share = 100 * factor["nnz"] / (n * m)
        result.append((f"  factor {q}", f"{n} x {m}, {factor['nnz']} non-zeros ({share:.3g} %)"))
    return result


def _objective_lines(facts: Facts) -> Lines:
    history = facts["objective_history"]
    result = [("objective", f"{facts['objective']:.6g} after {counted(facts['iterations'], 'iteration')}")]
    if len(history) > 1:
        above = [max(value - history[-1], 0.0) for value in history]
        percent = 100 * above[0] / history[-1] if history[-1] else 0.0
        words = f"{percent:.2g}" if percent < 99.5 else f"{percent:.0f}"
        if percent >= _SHOWN:
            result.append(("history", f"{sparkline(above)} at first {words} % above the last value"))
    return result


def _run_lines(facts: Facts) -> Lines:
    result = []
    if "smallest" in facts:
        smallest, largest = facts["smallest"], facts["largest"]
        result.append(("sizes", f"{smallest} to {largest} rows" if smallest < largest else f"{smallest} rows each"))
    if "seconds" in facts:
        rows = f" for {facts['rows']} rows" if "rows" in facts else ""
        resumed = ", continued from the checkpoint" if facts.get("resumed") else ""
        result.append(("time", f"{seconds(facts['seconds'])}{rows}{resumed}"))
    if "output" in facts:
        result.append(("written to", facts["output"]))
    if facts.get("labels") is not None:
        result.append(("labels", facts["labels"]))
    return result
