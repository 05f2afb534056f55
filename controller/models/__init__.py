"""The process `stowplan models`, which is opt-in: creates the objects of Models, and reports routes.

`run` is the entry point; `workers` process changed objects.

- Models: `model` creates what `expansion` computes, with `child_writer`, from `caches`
- ModelServers, ModelRoutes and InferenceObjectives: `traffic`, from `traffic_caches`
- ModelRoutes behind Gateways: `gateways`
"""
