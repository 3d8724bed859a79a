"""The layers that the papers share."""
