"""The figure of benchmarks.factorization: excess objective against multiply-adds, one panel per set of centroids."""

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from benchmarks.harness import DOCS

STYLES = {  # marker, colour; a line joins the points of methods that take any budget
    "sparse ALS": ("o-", "#b2182b"),
    "truncated SVD": ("s-", "#2166ac"),
    "thresholded U": ("^-", "#4d4d4d"),
    "coefficients over DCT": ("D-", "#7fbf7b"),
    "palm4MSA": ("P", "#762a83"),
    "hierarchical": ("h", "#c51b7d"),
    "pyfaust palm4msa": ("X", "#9970ab"),
    "pyfaust hierarchical": ("v", "#e08214"),
    "pyfaust fdb": ("*", "#35978f"),
}


def draw(records):
    """Write docs/frontier.png and return its path."""
    records = [r for r in records if "skipped" not in r]
    panels = list(dict.fromkeys((r["data"], r["K"], r["D"]) for r in records))
    n_columns = 4
    n_rows = -(-len(panels) // n_columns)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=(13, 3.2 * n_rows + 0.7), squeeze=False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        _panel(axis, panel, [r for r in records if (r["data"], r["K"], r["D"]) == panel])
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess objective")
    labels = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(labels.values(), labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.suptitle(
        "Excess of the k-means objective with factored centroids, against multiply-adds per point", fontsize=11
    )
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))
    path = DOCS / "frontier.png"
    figure.savefig(path, dpi=110)
    return path


def _panel(axis, panel, records):
    name, K, D = panel
    for method, (marker, colour) in STYLES.items():
        points = sorted((r["macs"], r["ratio"] - 1) for r in records if r["method"] == method)
        if points:
            axis.loglog(*zip(*points, strict=True), marker, color=colour, label=method, markersize=5, linewidth=1.2)
    axis.set_title(f"{name}, K = {K}, D = {D}", fontsize=9)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if x < 1e4 else f"{x / 1000:g}k"))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.3g}"))
    for one in (axis.xaxis, axis.yaxis):
        low, high = one.get_view_interval()
        one.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        if high < 3 * low:
            one.set_major_locator(MaxNLocator(4))
        one.set_minor_formatter(NullFormatter())
    axis.tick_params(labelsize=8)
    axis.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
