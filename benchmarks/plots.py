"""The figures of benchmarks.clustering, drawn from its results into docs/.

python -m benchmarks.plots
"""

import matplotlib.pyplot as plt

from benchmarks.harness import DOCS, load
from benchmarks.markdown import DATA

COLOURS = {"QKMeans": "#0b6e4f", "SuperKMeans": "#c8553d", "sklearn lloyd": "#3d5a80"}


def axes(n_panels, title):
    figure, panels = plt.subplots(1, n_panels, figsize=(5.2 * n_panels, 4), layout="constrained")
    figure.suptitle(title)
    return figure, list(panels) if n_panels > 1 else [panels]


def finish(figure, name):
    figure.savefig(DOCS / f"{name}.png", dpi=110)
    plt.close(figure)
    print(f"docs/{name}.png")


def plain_ticks(limits):
    """Return ticks at 1, 2 and 5 times powers of ten within the limits of an axis, and their labels."""
    ticks = [m * 10.0**p for p in range(-4, 5) for m in (1, 2, 5) if limits[0] <= m * 10.0**p <= limits[1]]
    return ticks, [f"{tick:g}" for tick in ticks]


def curve(records):
    """Draw the objective against time."""
    names = list(dict.fromkeys(record["data"] for record in records))
    figure, panels = axes(len(names), "Time and objective, every method from its own start")
    for panel, name in zip(panels, names, strict=True):
        own = [record for record in records if record["data"] == name]
        lowest = min(record["objective"] for record in own)
        for family, colour in COLOURS.items():
            line = [r for r in own if r["method"].startswith(family + ", ") and "iterations" in r["method"]]
            if line:
                points = sorted((r["seconds"], r["objective"] / lowest - 1) for r in line)
                panel.plot(*zip(*points, strict=True), "o-", color=colour, label=f"{family}, more iterations")
        for record in own:
            if "two levels" in record["method"]:
                panel.plot(record["seconds"], record["objective"] / lowest - 1, "s", color=COLOURS["SuperKMeans"],
                           mfc="none", label="SuperKMeans, two levels")  # fmt: skip
        panel.set(title=f"{DATA[name]}, K = {own[0]['K']}", xlabel="seconds", ylabel="objective above the lowest",
                  xscale="log")  # fmt: skip
        panel.set_xticks(*plain_ticks(panel.get_xlim()))
        panel.set_xticks([], minor=True)
        panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.1f} %")
        panel.grid(alpha=0.3)
        panel.legend()
    finish(figure, "time-and-objective")


def clusters(records):
    """Draw seconds per iteration against K, and the K from which on QKMeans is the fastest."""
    names = list(dict.fromkeys(record["data"] for record in records))
    figure, panels = axes(len(names), "Seconds per iteration, five iterations from the same rows")
    for panel, name in zip(panels, names, strict=True):
        own = [record for record in records if record["data"] == name]
        for method, colour in COLOURS.items():
            panel.loglog([r["K"] for r in own], [r["seconds_per_iteration"][method] for r in own], "o-",
                         color=colour, label=method)  # fmt: skip
        lost = [r["K"] for r in own if min(r["seconds_per_iteration"], key=r["seconds_per_iteration"].get) != "QKMeans"]
        first = next((r["K"] for r in own if not any(r["K"] <= K for K in lost)), None)
        if first is not None:
            panel.axvline(first, color="grey", ls=":", label=f"QKMeans fastest from K = {first} on")
        panel.set(title=f"{DATA[name]}, D = {own[0]['D']}", xlabel="K", ylabel="seconds")
        panel.grid(alpha=0.3, which="both")
        panel.legend()
    finish(figure, "time-against-clusters")


def rows(records):
    """Draw the fit time against N."""
    figure, (panel,) = axes(1, "Ten iterations, K = 1024, D = 256, noisy mixture")
    for method, colour in COLOURS.items():
        panel.loglog([r["N"] for r in records], [r["seconds"][method] for r in records], "o-", color=colour,
                     label=method)  # fmt: skip
    panel.set(xlabel="N", ylabel="seconds")
    panel.grid(alpha=0.3, which="both")
    panel.legend()
    finish(figure, "time-against-rows")


def main():
    results = load("clustering")
    for name, draw in {"curve": curve, "clusters": clusters, "rows": rows}.items():
        if name in results:
            draw(results[name]["records"])


if __name__ == "__main__":
    main()
