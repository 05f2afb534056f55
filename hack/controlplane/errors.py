"""Errors of the control plane rig.

ControlPlaneError
├── ToolchainMissingError     no Go toolchain, but a program must be built
├── BuildFailedError          `go build` failed
├── NoFreeNetworkError        all loopback networks are used by other instances
├── ComponentCrashedError     a component ended by itself
├── NotReadyError             a component runs but did not become ready in time
├── KubectlFailedError        kubectl exited with a non-zero code
└── NotRunningError           no control plane of that name runs in the background
"""

from __future__ import annotations


class ControlPlaneError(RuntimeError):
    """Any failure of the rig; the message says what to do next."""


class ToolchainMissingError(ControlPlaneError):
    """A program must be built, but no usable Go toolchain was found."""


class BuildFailedError(ControlPlaneError):
    """`go build` failed; the message ends with its last lines of output."""


class NoFreeNetworkError(ControlPlaneError):
    """All loopback networks of the range are leased by other running instances."""


class ComponentCrashedError(ControlPlaneError):
    """A component ended by itself; the message ends with the tail of its log."""


class NotReadyError(ControlPlaneError):
    """A component did not answer its readiness probe in time; the message ends with the tail of its log."""


class KubectlFailedError(ControlPlaneError):
    """Kubectl exited with a non-zero code; the message contains its standard error."""


class NotRunningError(ControlPlaneError):
    """No control plane of the given name runs in the background."""
