"""Makes the world match what was asked for.

`observe` reads the world into frozen records: pods, nodes, engine metrics. `planning` decides on them, pure.
`reconcilers` gather, plan and act. `solver` runs planning in a child process that can be killed. `simulation`
is a load-coupled model of inference engines, for replaying traces and for the demo.
"""
