"""`make bench-admission`: the cost of admission, compared with a straightforward server for the same task.

The straightforward server is a typical first implementation: aiohttp, `json`, `jsonschema` with the same
generated schema, and `jsonpatch` to compare the object with a copy that has its defaults. Both process the
same reviews in interleaved rounds: in process, from bytes to bytes, and as processes over TLS. The main
figure is CPU time per request, which other load on the machine affects least.

- a run: `measuring`, with `cases` of `objects`; results: `report`, `goals`
- handlers: `ours`, `straightforward`, `empty`; latency of the API server: `api_server`
"""
