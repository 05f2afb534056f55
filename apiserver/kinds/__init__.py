"""Declarations of the API kinds, one file for each kind and version. Data only, no I/O."""
