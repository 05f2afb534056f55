"""`make bench-conversion`: what conversion costs, beside a straightforward server that does the same job.

The straightforward server is what one writes first: aiohttp, `json`, and the conversion by hand on dicts,
which keeps in an annotation what the other version cannot say. Both answer reviews of the same objects in
interleaved rounds: in process, bytes to bytes, and as processes over TLS. A real API server then tells what
its users notice: reads and writes that need converting beside those that need none, and the time until it
serves reads after a restart, beside a converter that only changes `apiVersion`.
"""
