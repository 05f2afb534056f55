"""Declarative API schemas: types, defaults, validation and documentation derived from declarations."""
