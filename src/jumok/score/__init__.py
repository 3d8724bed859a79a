"""Scores with intervals and signatures. Nothing here knows a tensor."""
