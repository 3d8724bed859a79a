"""What an example, a batch, a loss and a prediction are."""
