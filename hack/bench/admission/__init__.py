"""`make bench-admission`: the cost of admission, compared with a straightforward server for the same task.

The straightforward server is a typical first implementation: aiohttp, `json`, `jsonschema` with the same
generated schema, and `jsonpatch` to compare the object with a copy that has its defaults. Both process the
same reviews over TLS, in interleaved rounds. The main figure is CPU time per request, which other load on the
machine affects least.

- reviews: `cases`, of `objects`; the server to compare with: `straightforward`
"""
