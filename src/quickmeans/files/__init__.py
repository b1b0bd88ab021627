"""Files: atomic writes, the container of tensors, models, checkpoints, indexes."""
