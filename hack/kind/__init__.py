"""Stowplan on a kind cluster, built and installed from this tree.

`python -m hack.kind up` creates the cluster, `python -m hack.kind down` deletes it. `kind` is built from the
module pinned here; docker or podman must be installed.

- the commands: `steps`
"""
