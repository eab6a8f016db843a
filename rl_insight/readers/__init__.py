"""Bytes to records: formats, without knowing roles."""
