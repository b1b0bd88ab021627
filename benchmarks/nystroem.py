"""QKNystroem and scikit-learn's Nystroem and RBFSampler: time per row, error of the kernel matrix, SVM accuracy.

    QUICKMEANS_DATA=... python -m benchmarks.nystroem [time error svm] [mnist blobs words convnet ...] [10 16 ...]

The kernel is Gaussian with gamma="mean-distance". Errors are those of the kernel matrices of 1000 test rows, of 1000
training rows, and of all training rows, as estimated from 5000 of them. Word vectors and convnet have no labels for an
SVM. Prints progress and writes benchmarks/results/nystroem.json; the entries of other sections are kept.
`python -m benchmarks.nystroem plot` draws docs/nystroem.png from it.
"""

import sys
from subprocess import run

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from benchmarks.data import split
from benchmarks.harness import alternate, load, machine, save, timed
from benchmarks.plots import axes, finish
from quickmeans import QKNystroem

SEEDS = range(5)
KINDS = ("kmeans", "qkmeans", "uniform", "leverage", "hadamard", "haar", "kmeans-hadamard")
CASES = [(name, K) for name in ("mnist", "fashion-mnist") for K in (10, 16, 30, 128, 256, 512)] + [
    *(("blobs", K) for K in (128, 256, 512)),
    *(("words", K) for K in (128, 512)),
    ("convnet", 256),
]


def scaled(name):
    """Return training rows, test rows and their labels; pixels are scaled to between 0 and 1."""
    X, test, *labels = split(name)
    scale = np.float32(255 if "mnist" in name else 1)
    return X / scale, test / scale, *labels


def fitted(X, K, kind, seed, **options):
    return QKNystroem(gamma="mean-distance", n_components=K, landmarks=kind, random_state=seed, **options).fit(X)


def summary(values):
    return {"mean": float(np.mean(values)), "deviation": float(np.std(values))}


def error(cases):
    """Measure the error of the kernel matrices of 1000 test rows and of 1000 training rows, with five seeds."""
    for name, K in cases:
        X, test, *_ = scaled(name)
        test, record = test[:1000], {"data": name, "K": K}
        record |= {key: {} for key in ("error", "training_error", "all_rows_error", "multiply_adds")}
        for kind in KINDS:
            models = [fitted(X, K, kind, seed) for seed in SEEDS]
            record["error"][kind] = summary([model.approximation_error(test) for model in models])
            record["training_error"][kind] = summary([model.approximation_error(X[:1000]) for model in models])
            record["all_rows_error"][kind] = summary([model.approximation_error(X) for model in models])
            record["multiply_adds"][kind] = float(np.mean([model.product_.macs for model in models]))
        gamma = models[0].gamma_
        distances = ((test**2).sum(1)[:, None] + (test**2).sum(1) - 2 * test @ test.T).clip(min=0)
        exact = np.exp(-gamma * distances)
        errors = []
        for seed in SEEDS:
            F = RBFSampler(gamma=gamma, n_components=K, random_state=seed).fit(test).transform(test)
            errors.append(np.linalg.norm(exact - F @ F.T) / np.linalg.norm(exact))
        record["error"]["RBFSampler"] = summary(errors)
        print(record, flush=True)
        yield record


def classifier(name):
    """Return a linear SVM: one-versus-rest for images, one-versus-one for the thousand small classes of Blobs."""
    return SVC(kernel="linear", C=10) if name == "blobs" else LinearSVC(random_state=0)


def svm(cases):
    """Measure the accuracy of linear SVMs on the features: five seeds up to 30 landmarks, one seed above."""
    for name, K in cases:
        X, test, y, expected = scaled(name)
        if y is None:
            continue
        seeds = SEEDS if K <= 30 else SEEDS[:1]
        record = {"data": name, "K": K, "seeds": len(seeds), "accuracy": {}}
        for kind in ("kmeans", "qkmeans", "uniform"):
            scores = []
            for seed in seeds:
                model = fitted(X, K, kind, seed)
                scores.append(classifier(name).fit(model.transform(X), y).score(model.transform(test), expected))
            record["accuracy"][kind] = summary(scores)
        print(record, flush=True)
        yield record


def time(cases):
    """Measure microseconds per row of features and of kernel values, on all training rows."""
    for name, K in cases:
        X = scaled(name)[0]
        models, fits = {}, {}
        for kind in ("kmeans", "qkmeans"):
            models[kind], fits[kind] = timed(lambda X=X, K=K, kind=kind: fitted(X, K, kind, 0), rounds=1)
        if name == "blobs":
            models["qkmeans, compression 25"] = fitted(X, K, "qkmeans", 0, compression=25)
        peer = Nystroem(gamma=models["kmeans"].gamma_, n_components=K).fit(models["kmeans"].components_)
        sampler = RBFSampler(gamma=models["kmeans"].gamma_, n_components=K, random_state=0).fit(X[:10])
        U = models["kmeans"].components_
        calls = {"sklearn Nystroem": lambda p=peer, X=X: p.transform(X),
                 "sklearn RBFSampler": lambda s=sampler, X=X: s.transform(X),
                 "sklearn rbf_kernel": lambda X=X, U=U, g=peer.gamma: rbf_kernel(X, U, g),
                 "dense product": lambda X=X, U=U: X @ U.T}  # fmt: skip
        for key, model in models.items():
            calls[f"features, {key}"] = lambda m=model, X=X: m.transform(X)
            calls[f"kernel rows, {key}"] = lambda m=model, X=X: m.kernel_row(X)
            calls[f"product, {key}"] = lambda m=model, X=X: m.product_.apply(X)
        seconds = alternate(calls, rounds=4, most=20)
        record = {"data": name, "K": K, "D": X.shape[1], "N": len(X),
                  "microseconds_per_row": {key: 1e6 * value / len(X) for key, value in seconds.items()},
                  "seconds_of_fit": fits, "multiply_adds": {key: model.product_.macs for key, model in models.items()},
                  "times_sklearn": {key: seconds["sklearn Nystroem"] / seconds[f"features, {key}"] for key in models},
                  "product_times_dense": {key: seconds["dense product"] / seconds[f"product, {key}"]
                                          for key in models},
                  "kernel_rows_times_dense_kernel_rows": {
                      key: min(seconds["sklearn rbf_kernel"], seconds["kernel rows, kmeans"])
                      / seconds[f"kernel rows, {key}"] for key in models},
                  "kernel_rows_times_dense_product": {key: seconds["dense product"] / seconds[f"kernel rows, {key}"]
                                                      for key in models}}  # fmt: skip
        print(record, flush=True)
        yield record


SECTIONS = {"time": time, "error": error, "svm": svm}


def keep(section, record):
    """Write a record to the file; it replaces an earlier one of the same case."""
    content = load("nystroem")
    content.setdefault("gamma", "mean-distance")
    content.setdefault("seeds", len(SEEDS))
    part = content.setdefault(section, {"records": []})
    commit = run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    record |= {"machine": machine("scikit-learn") | {"commit": commit}}  # records may be of several runs
    case = (record["data"], record["K"])
    part["records"] = [other for other in part["records"] if (other["data"], other["K"]) != case] + [record]
    part["records"].sort(key=lambda other: CASES.index((other["data"], other["K"])))
    save("nystroem", content)


def plot():
    """Draw the error against K for every kind of landmarks."""
    records = load("nystroem")["error"]["records"]
    names = list(dict.fromkeys(record["data"] for record in records))
    figure, panels = axes(len(names), "Error of the kernel matrix of 1000 test rows (mean and deviation of five seeds)")
    for panel, name in zip(panels, names, strict=True):
        own = [record for record in records if record["data"] == name]
        for kind in [*KINDS, "RBFSampler"]:
            values = [record["error"][kind] for record in own]
            style = {"fmt": "k--", "zorder": 3} if kind == "kmeans" else {"fmt": "o-"}
            panel.errorbar([record["K"] for record in own], [value["mean"] for value in values],
                           [value["deviation"] for value in values], label=kind,
                           lw=3 if kind == "qkmeans" else 1, **style)  # fmt: skip
        panel.set(title=name, xlabel="landmarks", ylabel="relative error", xscale="log", yscale="log")
        panel.grid(alpha=0.3, which="both")
    panels[-1].legend(fontsize=8, loc="center right")
    finish(figure, "nystroem")


def main():
    """Run the sections, data sets and numbers of landmarks that the arguments name; by default all."""
    arguments = sys.argv[1:]
    if "plot" in arguments:
        plot()
        return
    chosen = [name for name in arguments if name in SECTIONS] or list(SECTIONS)
    only = {argument for argument in arguments if argument not in SECTIONS}
    names, sizes = {name for name, _ in CASES} & only, {str(K) for _, K in CASES} & only
    cases = [(name, K) for name, K in CASES if name in (names or {name}) and str(K) in (sizes or {str(K)})]
    for section in chosen:
        for record in SECTIONS[section](cases):
            keep(section, record)


if __name__ == "__main__":
    main()
