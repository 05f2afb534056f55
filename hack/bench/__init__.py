"""Benchmarks: the cost of our components, compared with straightforward implementations.

Each has its own folder and `make bench-…` target. Alternatives are measured in the same minutes and reported
as ratios, because the load of the machine affects both alike. The output ends with one line per goal; a
missed goal never fails a build. This package contains what all benchmarks share: the command line, the frame
of a run, servers on their own core, CPU time, TLS load, tables, goal lines and results. No benchmark imports
from another.

- a run: `command`, `frame`, `machine`, `cores`, `child`; its results: `measurement`, `goals`, `table`,
  `compared` names
- servers: `server_process`, `answering_server`, `webhooks_process`; load over TLS: `connection`, `load`
- costs: `costs`, and without a server: `in_process`; input: `reviews`, `received`
"""
