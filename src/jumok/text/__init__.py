"""Strings and ids, file formats. Nothing here knows a tensor."""
