"""The network of the node, inside of the namespace that the run made."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

ADDRESS: Final = "192.0.2.10"
"""Of the node, and of the control plane on it; set aside for documentation, so nobody's."""

PODS: Final = "10.244.0.0/24"
"""Of pods on the real node."""

SIMULATED_PODS: Final = "10.244.128.0/17"
"""Of pods on kwok's nodes: local here, so that a simulated engine can listen where real pods ask."""

_SIMULATED_NODES: Final = "192.0.2.20"
_COMMANDS: Final = (
    "link set lo up",
    "link add name node0 type bridge",
    # A bridge has a carrier, and its routes are used, as soon as one of its ports is up.
    "link add name port0 type veth peer name port1",
    "link set port0 master node0 up",
    "link set port1 up",
    f"address add {ADDRESS}/24 dev node0",
    "link set node0 up",
    # Cluster addresses are translated after a route to them was found; nothing else leaves.
    "route add default via 192.0.2.1",
    f"route add local {SIMULATED_PODS} dev lo",
)


class NodeNetwork:
    """The control plane's network when a real node is beside it: everything listens on the node's address."""

    def __init__(self) -> None:
        for command in _COMMANDS:
            subprocess.run(["/usr/sbin/ip", *command.split()], check=True)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")

    @property
    def pod_cidr(self) -> str:
        """The addresses of simulated pods."""
        return SIMULATED_PODS

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share; nobody listens there."""
        return _SIMULATED_NODES

    @property
    def is_routed(self) -> bool:
        """Pods reach the node's address."""
        return True

    def allocate_address(self) -> str:
        """Give out the node's address: ports tell who is meant."""
        return ADDRESS

    def release(self) -> None:
        """Leave it to the namespace, which takes it along."""
