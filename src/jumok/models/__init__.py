"""One file per paper, with its config; build.py builds a model from a config."""
