"""One paper, one file, its config above it."""
