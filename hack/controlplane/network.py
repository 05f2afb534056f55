"""The network of one copy of the control plane: by default a loopback network of its own.

All of 127.0.0.0/8 is local on Linux, so a copy takes one /16 out of 127.64.0.0/10. Its lower half belongs to
pods (a simulated engine really listens on its pod's address), its upper half to services.
"""

from __future__ import annotations

import errno
import itertools
import socket
from typing import Protocol

from hack.controlplane.errors import NoFreeNetworkError

_NETWORKS = range(64, 127)
_LEASE_PORT = 17127
"""Below the ephemeral ports, so that nothing takes it by chance."""


class Network(Protocol):
    """Where the components of one copy listen, and where its simulated nodes and pods are."""

    @property
    def pod_cidr(self) -> str:
        """The addresses of simulated pods."""

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share."""

    @property
    def is_routed(self) -> bool:
        """Whether pods of a real node reach the components, so that Services can lead to them."""

    def allocate_address(self) -> str:
        """Give out an address to listen on."""

    def release(self) -> None:
        """Give up what the network holds."""


class LoopbackNetwork:
    """A leased network; the lease is a bound socket: it holds machine-wide and ends with the process."""

    def __init__(self) -> None:
        self._lease, self._prefix = _lease()
        self._hosts = itertools.count()

    @property
    def pod_cidr(self) -> str:
        """The addresses of pods, such as `127.64.0.0/17`."""
        return f"{self._prefix}.0.0/17"

    @property
    def node_address(self) -> str:
        """The one address that all simulated nodes share."""
        return f"{self._prefix}.255.253"

    @property
    def is_routed(self) -> bool:
        """Loopback addresses lead everybody to themselves."""
        return False

    def allocate_address(self) -> str:
        """Give out an address for a service, never given out before by this copy."""
        third, fourth = divmod(next(self._hosts), 250)
        return f"{self._prefix}.{128 + third}.{fourth + 1}"

    def release(self) -> None:
        """Let another copy have the network."""
        self._lease.close()


def free_port(address: str) -> int:
    """Find a TCP port on which nothing listens at this address right now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
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
