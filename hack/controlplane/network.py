"""The network of one control plane: by default its own loopback network.

All of 127.0.0.0/8 is local on Linux, so an instance takes one /16 of 127.64.0.0/10. The lower half is for
pods (a simulated engine listens on its pod's address), the upper half for services.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
from typing import Protocol

from hack.controlplane.errors import NoFreeNetworkError

_NETWORKS = range(64, 127)
_LEASE_PORT = 17127
"""Below the ephemeral port range, so that no process gets it by chance."""

_PORTS = range(20_000, 32_000)
_numbers = itertools.count(97 * os.getpid())
"""Processes begin at different numbers, so that two of them rarely choose the same port at the same time."""


class Network(Protocol):
    """Addresses of one instance's components, simulated nodes and pods."""

    @property
    def pod_cidr(self) -> str:
        """Address range of simulated pods."""

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share."""

    @property
    def is_routed(self) -> bool:
        """Whether pods of a real node can reach the components, so that Services can lead to them."""

    def allocate_address(self) -> str:
        """Return a new address to listen on."""

    def release(self) -> None:
        """Release the resources of the network."""


class LoopbackNetwork:
    """A leased network; the lease is a bound socket, which is exclusive and ends with the process."""

    def __init__(self) -> None:
        self._lease, self._prefix = _lease()
        self._hosts = itertools.count()

    @property
    def pod_cidr(self) -> str:
        """Address range of pods, such as `127.64.0.0/17`."""
        return f"{self._prefix}.0.0/17"

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share."""
        return f"{self._prefix}.255.253"

    @property
    def is_routed(self) -> bool:
        """False, since loopback addresses are local to every host."""
        return False

    def allocate_address(self) -> str:
        """Return a new address for a service, unique in this instance."""
        third, fourth = divmod(next(self._hosts), 250)
        return f"{self._prefix}.{128 + third}.{fourth + 1}"

    def release(self) -> None:
        """Release the network for other instances."""
        self._lease.close()


def free_port(address: str) -> int:
    """Return a TCP port on which nothing listens at this address now, another one in each call.

    It is below the ephemeral port range: until it is used, no process that listens on all addresses, at any
    free port, can get it.
    """
    while True:
        port = _PORTS[next(_numbers) % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


def _lease() -> tuple[socket.socket, str]:
    for second in _NETWORKS:
        prefix = f"127.{second}"
        lease = socket.socket()
        try:
            lease.bind((f"{prefix}.255.254", _LEASE_PORT))
        except OSError as error:
            lease.close()
            if error.errno == errno.EADDRINUSE:
                continue
            raise NoFreeNetworkError(
                f"{prefix}.255.254 is not a local address here ({error}); "
                "the control plane needs Linux, where all of 127.0.0.0/8 is"
            ) from error
        return lease, prefix
    raise NoFreeNetworkError(
        f"all {len(_NETWORKS)} loopback networks are taken by running copies (or something listens on port "
        f"{_LEASE_PORT} of every address); stop one with: python -m hack.controlplane down --name NAME"
    )
