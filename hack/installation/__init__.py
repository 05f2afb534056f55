"""Stowplan on a control plane of plain processes: the shipped manifests, with our three processes.

It replaces what a cluster's nodes would do: a Service becomes an ExternalName with a loopback address,
Secrets are mounted by copying them into a directory, and our Deployments run as processes, each with its own
service account.

- processes: `installation`; also the controller of Models: `models`
- Secrets in directories: `mounts`; adapted manifests: `manifests`
"""

from hack.installation.installation import Installation

__all__ = ["Installation"]
