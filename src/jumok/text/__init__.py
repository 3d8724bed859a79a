"""Text processing: tokenizers, vocabularies and file formats. No tensors."""
