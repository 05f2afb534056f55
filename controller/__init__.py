"""Controllers that observe the cluster, plan replicas and publish or apply the plan.

`observe` converts cluster objects and engine metrics into frozen records. `planning` decides on them in pure
functions. `reconcilers` gather, plan and act. `solver` runs planning in a child process that can be killed.
`simulation` models inference engines under load, for trace replays and for the demo.

- the process `stowplan controller`: `run`, with `config` and `config_planning`; `stowplan models`:
  `models_run`, with `models_config`
- planning in a child process: `planner`, `solver`, `solver_worker`, `uncollected`
- caches: `caches`, `models_caches`, `gateway_caches`, `traffic_caches`; scale subresources: `scale_reader`
- metrics: `telemetry`, `binding_telemetry`; one replica of several: `replica`
"""
