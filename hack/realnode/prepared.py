"""What is made before the namespaces are, with the machine's network, and handed to the command in them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Self

import msgspec

from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.realnode.image import Image, provide_images
from hack.realnode.prerequisites import require
from hack.realnode.programs import provide_programs

_VARIABLE: Final = "STOWPLAN_REAL_NODE"


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """Programs, images and the cgroup of a node."""

    programs: dict[str, str]
    images: tuple[Image, ...]
    cgroup: str
    """The name of a cgroup in every hierarchy, below which those of pods are."""

    @classmethod
    def make(cls, progress: ProgressLine, *, cgroup: str) -> Self:
        """Install, build and fetch what is missing; raises ControlPlaneError with what cannot be had."""
        require(progress)
        programs = {name: str(path) for name, path in provide_programs(progress).items()}
        return cls(programs=programs, images=provide_images(progress), cgroup=cgroup)

    @classmethod
    def handed_over(cls) -> Self:
        """Read what was made for this process; raises ControlPlaneError where nothing was."""
        text = os.environ.get(_VARIABLE)
        if text is None:
            raise ControlPlaneError("a real node needs namespaces of its own: run `make e2e`")
        return msgspec.json.decode(text, type=cls)

    def environment(self) -> dict[str, str]:
        """Return what hands this over to a child process."""
        return {_VARIABLE: msgspec.json.encode(self).decode()}

    def program(self, name: str) -> Path:
        """Return where a program is."""
        return Path(self.programs[name])


def is_handed_over() -> bool:
    """Tell whether this process was started in namespaces where a node can be."""
    return _VARIABLE in os.environ
