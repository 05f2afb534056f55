"""The process `stowplan models`, which is opt-in: creates the objects of Models, and reports routes.

`run` is the entry point. `model` creates what `expansion` computes, with `child_writer` and
`model_adapters`;
`gateways` and `traffic` do the same for ModelRoutes and for the statuses of routing; `workers` runs them on
changed objects.

- caches: `caches`, `gateway_caches`, `traffic_caches`
"""
