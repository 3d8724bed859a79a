"""Equations that the papers share."""
