"""`make bench-admission`: what admission costs, beside a straightforward server that does the same job.

The straightforward server is what one writes first: aiohttp, `json`, `jsonschema` with the same generated
schema, and `jsonpatch` comparing the object with a copy that has its defaults. Both answer the same reviews
in interleaved rounds: in process, bytes to bytes, and as processes over TLS. The merit is CPU time per
request, which a busy machine disturbs least.
"""
