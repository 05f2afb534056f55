"""What can go wrong in the control plane rig.

ControlPlaneError
├── ToolchainMissingError     no Go toolchain, and something has to be built
├── BuildFailedError          `go build` ended with an error
├── NoFreeNetworkError        every loopback network is taken by another copy
├── ComponentCrashedError     a component ended although nobody asked it to
├── NotReadyError             a component runs but did not become ready in time
├── KubectlFailedError        kubectl ended with a non-zero exit code
└── NotRunningError           no control plane of that name runs in the background
"""

from __future__ import annotations


class ControlPlaneError(RuntimeError):
    """Any failure of the rig; the message says what to do next."""


class ToolchainMissingError(ControlPlaneError):
    """A binary has to be built and no usable Go toolchain was found."""


class BuildFailedError(ControlPlaneError):
    """`go build` ended with an error; the message ends with its last lines."""


class NoFreeNetworkError(ControlPlaneError):
    """Every loopback network of the range is leased by another running copy."""


class ComponentCrashedError(ControlPlaneError):
    """A component ended by itself; the message ends with the tail of its log."""


class NotReadyError(ControlPlaneError):
    """A component did not answer its readiness probe in time; the message ends with the tail of its log."""


class KubectlFailedError(ControlPlaneError):
    """Kubectl ended with a non-zero exit code; the message carries what it wrote to standard error."""


class NotRunningError(ControlPlaneError):
    """No control plane of the given name runs in the background."""
