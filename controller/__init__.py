"""Controllers that observe the cluster, plan replicas and publish the plan, and the verbs of `stowplan`.

`engines` fetches metrics, `observe` translates objects into a snapshot, `sizing` adds loads and capacities,
and `planning` decides, in pure functions. `variants` and `bindings` run this in cycles. `commands` has the
verbs.

- the process `stowplan controller`: `run`, with `config` and `config_planning`, and `caches` of `projections`
- one replica of several: `replica`
"""
