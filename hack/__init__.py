"""Development programs, one for each task: set up, control plane, demo, generate, verify, bench.

- files from declarations: `generate`
"""
