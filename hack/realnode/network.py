"""The network of the node, inside the run's network namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

ADDRESS: Final = "192.0.2.10"
"""Address of the node and of the control plane on it, from a documentation range."""

PODS: Final = "10.244.0.0/24"
"""Address range of pods on the real node."""

SIMULATED_PODS: Final = "10.244.128.0/17"
"""Address range of pods on kwok's nodes; local here, so simulated engines can listen where real pods call."""

_SIMULATED_NODES: Final = "192.0.2.20"
_COMMANDS: Final = (
    "link set lo up",
    "link add name node0 type bridge",
    # A bridge gets a carrier, and its routes are used, as soon as one of its ports is up.
    "link add name port0 type veth peer name port1",
    "link set port0 master node0 up",
    "link set port1 up",
    f"address add {ADDRESS}/24 dev node0",
    "link set node0 up",
    # Cluster IPs are translated only after a route for them is found; no other traffic leaves.
    "route add default via 192.0.2.1",
    f"route add local {SIMULATED_PODS} dev lo",
)


class NodeNetwork:
    """The control plane's network with a real node: everything listens on the node's address."""

    def __init__(self) -> None:
        for command in _COMMANDS:
            subprocess.run(["/usr/sbin/ip", *command.split()], check=True)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")

    @property
    def pod_cidr(self) -> str:
        """Address range of simulated pods."""
        return SIMULATED_PODS

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share; nothing listens there."""
        return _SIMULATED_NODES

    @property
    def is_routed(self) -> bool:
        """True, since pods can reach the node's address."""
        return True

    def allocate_address(self) -> str:
        """Return the node's address; services differ by port."""
        return ADDRESS

    def release(self) -> None:
        """Do nothing, as the interfaces disappear with the namespace."""
