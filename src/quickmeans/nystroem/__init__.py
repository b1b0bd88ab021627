"""Nyström features: kernels, landmarks and their choice, products near landmarks, and the features of rows."""
