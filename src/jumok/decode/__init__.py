"""Search over any decoder: greedy, sampling and beam, written once."""
