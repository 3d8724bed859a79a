"""Greedy search, sampling and beam search over any decoder."""
