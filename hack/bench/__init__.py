"""Benchmarks: the cost of our components, compared with straightforward implementations.

Each has its own folder and `make bench-…` target. Alternatives are measured in the same minutes and reported
as ratios, because the load of the machine affects both alike. The output ends with one line per goal; a
missed goal never fails a build. This package contains what all benchmarks share: the command line, the frame
of a run, CPU time, tables, goal lines and results; servers and requests to them are in `hack.calling`. No
benchmark imports from another, and no test imports a benchmark: each checks the answers that it measures.

- a run: `command`, `frame`, `machine`, `child`
- its results: `measurement`, `goals`, `table`, `compared` names
- servers: `answering_server`, `webhooks_process`; costs: `costs`, and without a server: `in_process`
"""
