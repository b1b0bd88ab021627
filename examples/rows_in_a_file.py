"""Rows in a file: they are clustered block by block, and their labels are written to another file."""

import numpy as np

import quickmeans
from quickmeans import QKMeans

N, D = 50_000, 64
rng = np.random.default_rng(0)
basis = rng.standard_normal((8, D), np.float32)
rows = np.lib.format.open_memmap("rows.npy", "w+", np.float32, (N, D))
for begin in range(0, N, 10_000):  # the file may be larger than the memory
    rows[begin : begin + 10_000] = rng.standard_normal((10_000, 8), np.float32) @ basis
del rows

# If the process is killed, the same lines continue from the last iteration.
model = QKMeans(256, max_iter=10, tol=0, checkpoint="fit.checkpoint", random_state=0).fit("rows.npy")
count = model.predict("rows.npy", output="labels.npy")
model.save("model.safetensors")
again = quickmeans.load("model.safetensors")
print(f"{count} labels; objective {model.inertia_:.4g}, {again.cluster_centers_.shape[0]} centroids loaded")
