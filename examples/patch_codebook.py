"""A photograph coded by a codebook: the nearest of 512 centroids replaces every patch of 8 x 8 colour pixels."""

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

from quickmeans import QKMeans

SIDE, K = 8, 512
photo = load_sample_image("china.jpg")
height, width = (n // SIDE * SIDE for n in photo.shape[:2])
photo = photo[:height, :width]
blocks = photo.reshape(height // SIDE, SIDE, width // SIDE, SIDE, 3).swapaxes(1, 2)
X = blocks.reshape(-1, SIDE * SIDE * 3).astype(np.float32)

model = QKMeans(K, max_iter=20, random_state=0).fit(X)
coded = model.cluster_centers_[model.labels_].clip(0, 255).astype(np.uint8)
picture = coded.reshape(blocks.shape).swapaxes(1, 2).reshape(photo.shape)
Image.fromarray(picture).save("codebook.png")

error = np.mean((picture.astype(float) - photo) ** 2)
psnr = 10 * np.log10(255**2 / error)
print(f"{len(X)} patches, {K} centroids of {X.shape[1]} numbers: {psnr:.1f} dB, written to codebook.png")
