"""Stowplan on a cluster of kind, built and installed from this tree.

`python -m hack.kind up` makes the cluster, `python -m hack.kind down` removes it. `kind` is built from the
module that is pinned here; a container engine, docker or podman, has to be on the machine.
"""
