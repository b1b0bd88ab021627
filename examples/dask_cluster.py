"""Cluster rows on the workers of a Dask cluster: here two in this process; any other `Client` works too."""

import dask.array as da
from distributed import Client

from quickmeans import QKMeans

with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    X = da.random.default_rng(0).standard_normal((40_000, 32), chunks=(10_000, 32), dtype="float32").persist()
    model = QKMeans(64, max_iter=5, tol=0, random_state=0).fit(X)
    labels = model.predict(X)  # a lazy Dask array
    sizes = da.bincount(labels, minlength=64).compute()
    n_workers = len(client.scheduler_info()["workers"])
    print(f"{len(X)} rows on {n_workers} workers, {sizes.min()} to {sizes.max()} per cluster")
