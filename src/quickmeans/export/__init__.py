"""Fitted clusters for other programs: scikit-learn's KMeans, and ONNX."""
