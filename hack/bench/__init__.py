"""Benchmarks: what our parts cost, beside the straightforward way of doing the same.

One folder and one `make bench-…` each. They print what they measured, ratios first to what runs beside them
in the same minutes, since the machine's mood moves both alike; they end with one line per goal and never
fail a build. Here is what all of them share: goal lines, results, the machine's state, CPU time, TLS load.
"""
