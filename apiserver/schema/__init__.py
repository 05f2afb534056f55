"""The machine: reads a declaration once and derives schema, defaults, checks and prose from it."""
