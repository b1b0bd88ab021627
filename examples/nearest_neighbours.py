"""Nearest neighbours of image patches: inverted lists tuned for a recall, compared with an exact search."""

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.neighbors import NearestNeighbors

import quickmeans
from quickmeans import QKNeighbors

grey = load_sample_image("flower.jpg").mean(axis=2, dtype=np.float32)
X = extract_patches_2d(grey, (12, 12), max_patches=11_000, random_state=0).reshape(-1, 144)
X, queries = X[:10_000], X[10_000:]

index = QKNeighbors(n_neighbors=10, recall=0.95, random_state=0).fit(X)
distances, ids = index.kneighbors(queries)
exact = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X).kneighbors(queries, return_distance=False)
recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, exact, strict=True)])
print(f"{index.quantizer_.n_clusters} lists, {index.nprobe_} of them searched: recall {recall:.3f}")

new = index.add(queries)  # add rows, save the index, and load it again
index.save("patches.index")
again = quickmeans.load("patches.index")
print("A row that was added is its own neighbour:", bool((again.kneighbors(queries[:5])[1][:, 0] == new[:5]).all()))
