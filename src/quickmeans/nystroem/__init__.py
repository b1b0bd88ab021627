"""The Nyström approximation: kernels, landmarks and the features they make; functions on arrays."""
