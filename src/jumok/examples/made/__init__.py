"""Examples that are made: exact, without end, and small enough to learn in a minute."""
