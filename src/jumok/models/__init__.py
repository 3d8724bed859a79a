"""One paper, one file, its config above it; build.py makes a model from a config."""
