"""The paper's algorithm, whose centroids are the rows of a product of sparse matrices, with three solvers."""

from sklearn.datasets import load_digits

from quickmeans import QKMeans

X = load_digits().data
K = 30
start = X[:: len(X) // K][:K]
same = {"init": start, "max_iter": 20, "tol": 0}

models = {
    "k-means": QKMeans(K, **same),
    "als": QKMeans(K, shortlist=0, solver="als", compression=2, **same),
    "palm4msa": QKMeans(K, shortlist=0, solver="palm4msa", n_factors=2, sparsity_level=5, **same),
    "hierarchical": QKMeans(K, shortlist=0, solver="hierarchical", n_factors=2, sparsity_level=5, **same),
}
for name, model in models.items():
    model.fit(X)
    numbers = model.product_.nnz if model.shortlist == 0 else model.cluster_centers_.size
    print(
        f"{name}: {numbers} numbers, objective {model.inertia_ / models['k-means'].inertia_:.4f} times that of k-means"
    )
