"""Files: the container of a state, checkpoints of a fit, indexes and the lists of faiss."""
