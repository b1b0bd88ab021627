"""What there is to say of a fitted model or index: as plain data, and as lines for people."""

import os
from glob import escape
from pathlib import Path
from typing import Any

from quickmeans.cli.terminal import size, sparkline

Facts = dict[str, Any]


def describe(model: Any, path: str | os.PathLike[str] | None = None) -> Facts:
    """Plain data, ready for JSON; with a path, also the size of its file."""
    kinds = {"QKMeans": _clustering, "QKNystroem": _features}
    facts: Facts = {"kind": type(model).__name__} | kinds.get(type(model).__name__, _index)(model)
    if path is not None:
        facts["file"] = os.fsdecode(path)
        facts["file_bytes"] = sum(part.stat().st_size for part in _files(Path(path)))
    return facts


def _files(path: Path) -> list[Path]:
    """The file, and the lists that belong to it if it is an index."""
    return [path, *path.parent.glob(f"{escape(path.name)}.{'[0-9a-f]' * 16}.lists")]


def _clustering(model: Any) -> Facts:
    K, D = model.cluster_centers_.shape
    return {
        "clusters": K,
        "features": D,
        "centroids": "rows of the product" if model._fitted_shortlist == 0 else "exact means",
        "dtype": model.cluster_centers_.dtype.name,
        "spherical": model._frame.spherical,
        "product": _product(model.product_),
        "exact_distances_per_row": float(model.n_candidates_),
        "objective": float(model.inertia_),
        "iterations": int(model.n_iter_),
        "objective_history": model.objective_history_.tolist(),
        "dense_bytes": model.cluster_centers_.nbytes,
        "parameters": _parameters(model),
    }


def _features(model: Any) -> Facts:
    K, D = model.components_.shape
    return {
        "landmarks": K,
        "features": D,
        "kernel": model._fitted_kernel[0],
        "gamma": float(model.gamma_),
        "dtype": model.components_.dtype.name,
        "product": _product(model.product_),
        "dense_bytes": model.components_.nbytes + model.normalization_.nbytes,
        "parameters": _parameters(model),
    }


def _index(model: Any) -> Facts:
    return {
        "rows": model.n_samples_fit_,
        "features": model.n_features_in_,
        "metric": model._fitted_metric,
        "lists": len(model.quantizer_.cluster_centers_),
        "nprobe": model.nprobe_,
        "payload": model.payload,
        "product": _product(model.quantizer_.product_),
        "dense_bytes": 4 * model.n_samples_fit_ * model.n_features_in_,
        "parameters": _parameters(model),
    }


def _parameters(model: Any) -> Facts:
    """Those that are numbers or words."""
    given = model.get_params(deep=False).items()
    return {name: value for name, value in given if value is None or isinstance(value, str | int | float)}


def _product(product: Any) -> Facts | None:
    if product is None:
        return None
    factors = [{"shape": list(S.shape), "nnz": int(getattr(S, "nnz", S.size))} for S in product.factors]
    K, D = product.shape
    return {"factors": factors, "nnz": int(product.nnz), "compression": K * D / product.nnz}


def lines(facts: Facts) -> list[tuple[str, str]]:
    """What people read."""
    kind = facts["kind"]
    tell = {"QKMeans": _clustering_lines, "QKNystroem": _features_lines}.get(kind, _index_lines)
    result = [*tell(facts), *_product_lines(facts["product"])]
    if "objective_history" in facts:
        result += _objective_lines(facts)
    if "file_bytes" in facts:
        dense = {"QKMeans": "dense centroids", "QKNystroem": "dense landmarks and their normalization"}
        what = dense.get(kind, "the rows in float32")
        result.append(("file", f"{size(facts['file_bytes'])}; {what} alone would take {size(facts['dense_bytes'])}"))
    return result


def _clustering_lines(facts: Facts) -> list[tuple[str, str]]:
    spherical = ", compared by direction" if facts["spherical"] else ""
    result = [
        ("QKMeans", f"{facts['clusters']} clusters, {facts['features']} features{spherical}"),
        ("centroids", f"{facts['centroids']}, {facts['dtype']}"),
    ]
    if facts["centroids"] == "exact means" and facts["product"] is not None:
        result.append(("assignment", f"{facts['exact_distances_per_row']:.2g} exact distances per row"))
    return result


def _features_lines(facts: Facts) -> list[tuple[str, str]]:
    return [
        ("QKNystroem", f"{facts['landmarks']} landmarks, {facts['features']} features"),
        ("kernel", f"{facts['kernel']}, gamma {facts['gamma']:.4g}"),
    ]


def _index_lines(facts: Facts) -> list[tuple[str, str]]:
    return [
        (facts["kind"], f"{facts['rows']} rows, {facts['features']} features, {facts['metric']}"),
        ("lists", f"{facts['lists']}, of which a query looks at {facts['nprobe']}; payload {facts['payload']}"),
    ]


def _product_lines(product: Facts | None) -> list[tuple[str, str]]:
    if product is None:
        return [("product", "none: dense centroids are as fast")]
    fewer = f", {product['compression']:.1f} times fewer than dense" if product["compression"] > 1.05 else ""
    result = [("product", f"{product['nnz']} non-zeros{fewer}")]
    for q, factor in enumerate(product["factors"], 1):
        n, m = factor["shape"]
        share = 100 * factor["nnz"] / (n * m)
        result.append((f"  factor {q}", f"{n} x {m}, {factor['nnz']} non-zeros ({share:.3g} %)"))
    return result


def _objective_lines(facts: Facts) -> list[tuple[str, str]]:
    history = facts["objective_history"]
    result = [("objective", f"{facts['objective']:.6g} after {facts['iterations']} iterations")]
    if len(history) > 1:
        result.append(("history", f"{sparkline(history)} from {history[0]:.6g} on"))
    return result
