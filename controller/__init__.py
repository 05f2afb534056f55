"""Controllers that observe the cluster, plan replicas and publish or apply the plan.

`observe` converts cluster objects and engine metrics into frozen records. `planning` decides on them in pure
functions. `reconcilers` gather, plan and act. `solver` runs planning in a child process that can be killed.
`simulation` models inference engines under load, for trace replays and for the demo.
"""
