"""Stowplan on a control plane of plain processes: the shipped manifests, and our three processes beside it.

What a cluster's nodes would do is done here instead: a Service becomes an ExternalName that leads to a
loopback address, Secrets are mounted by copying them into a directory, and Deployments of ours are started
as processes, each under its own service account.
"""

from hack.installation.installation import Installation

__all__ = ["Installation"]
