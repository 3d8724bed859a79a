"""Examples, token shards and batches."""
