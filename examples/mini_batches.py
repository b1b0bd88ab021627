"""A stream: partial_fit updates the centroids batch by batch, also when the distribution of the rows changes."""

import numpy as np

from quickmeans import QKMeans

rng = np.random.default_rng(0)
centres = rng.normal(scale=5, size=(40, 24)).astype(np.float32)


def batch(n=2000):
    """Return rows around the present centres."""
    return centres[rng.integers(40, size=n)] + rng.standard_normal((n, 24), np.float32)


model = QKMeans(40, random_state=0)
costs = []
for step in range(30):
    if step == 15:
        centres += rng.standard_normal(centres.shape, np.float32)  # the distribution changes
    rows = batch()
    if step:
        costs.append(-model.score(rows) / len(rows))  # before the model has seen these rows
    model.partial_fit(rows)
print("squared distance per row:", " ".join(f"{cost:.0f}" for cost in costs[::2]))
