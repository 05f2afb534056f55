"""Benchmarks: what our parts cost, beside the straightforward way of doing the same.

One folder and one `make bench-…` each. They print what they measured, ratios first to what runs beside them
in the same minutes, since the machine's mood moves both alike; they end with one line per goal and never
fail a build. Here is what all of them share: the command line, the frame of a measuring, servers on their own
core, CPU time, TLS load, tables, goal lines and results. No benchmark takes anything from another.
"""
