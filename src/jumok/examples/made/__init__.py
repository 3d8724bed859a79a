"""Generated examples: exact, unlimited, and simple enough to learn in a minute."""
