"""Three judges of one object: ours, `jsonschema`, and a real API server. They must agree.

`generate` makes objects from a declaration's tree, each known by its kind and number; `ours`, `second` and
`server` judge them; `differences` names every difference that has a reason; `bench` compares and counts.
"""
