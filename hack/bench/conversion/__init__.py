"""`make bench-conversion`: the cost of conversion, compared with a straightforward server for the same task.

The straightforward server is a typical first implementation: aiohttp, `json`, and hand-written conversion of
dicts, which keeps fields that the other version lacks in an annotation. Both process reviews of the same
objects in interleaved rounds: in process, from bytes to bytes, and as processes over TLS. A real API server
then shows the effect on its users: the latency of reads and writes with and without conversion, and the time
until it serves reads after a restart, compared with a converter that only changes `apiVersion`.

- a run: `measuring`, with `cases`; results: `report`, `goals`
- servers: `straightforward`, `trivial`; the start of ours: `start`
- on a control plane: `upgraded`, `calls`, `restarts`
"""
