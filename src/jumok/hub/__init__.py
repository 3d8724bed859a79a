"""Model folders in the Hugging Face layout, read and written without importing transformers."""
