"""Scores with intervals and signatures, without torch."""
