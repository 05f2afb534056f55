"""Benchmarks: the cost of our components, compared with straightforward implementations.

Each has its own folder and `make bench-…` target. Alternatives are measured in the same minutes and reported
as ratios, because the load of the machine affects both alike. The output ends with one line per goal; a
missed goal never fails a build. No benchmark imports from another, and no test imports a benchmark: each
checks the answers that it measures.

- a run with its command line and results: `run`; goals and tables: `goals`, `table`
- work in other processes: `processes`; servers and their handlers: `servers`
"""
