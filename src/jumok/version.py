"""The package version: the last number changes if old run folders still open, the middle one if they do not."""

__version__ = "0.1.0"
