"""The version of the package; its last digit changes when old run folders still open, the middle one when not."""

__version__ = "0.1.0"
