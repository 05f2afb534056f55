"""Three judges of the validity of an object: our validator, `jsonschema`, and a real API server.

They must agree. `generate` generates objects from the node tree of a declaration, each identified by its kind
and number; `ours`, `second` and `server` judge them; `differences` lists every difference with a known
reason; `compare` compares and counts.
"""
