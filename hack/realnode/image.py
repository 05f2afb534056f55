"""Stowplan's image, built by the Dockerfile's own steps, and the sandbox image of pods."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from hack.controlplane.cache import cache_directory, hold_lock
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.realnode.base import provide_base, provide_wheels

ROOT: Final = Path(__file__).resolve().parents[2]
SANDBOX: Final = "localhost/pause:1"
"""Runs in every pod and only waits."""

_REGISTRY: Final = "docker.io/library"
"""The default registry of image names in kubelets and Dockerfiles."""

_AGAIN: Final = "localhost/stowplan-again"
_NO_INDEX: Final = "[global]\nno-index = true\nfind-links = /wheels\n"


class ArchiveImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image in an archive."""

    name: str
    archive: str
    layer_bytes: tuple[int, ...]
    """Unpacked size of each layer, from the base up."""


def provide_images(progress: ProgressLine) -> tuple[ArchiveImage, ...]:
    """Build the images of this tree; unchanged steps are cached."""
    with _store(progress) as store:
        base = provide_base(store.directory, progress)
        return store.sandbox(), store.stowplan(base, progress)


def build_again(tree: Path, progress: ProgressLine) -> tuple[str, str]:
    """Return the digests of this tree's image as built before, and of a build without cache."""
    with _store(progress) as store:
        return store.digest(f"{_REGISTRY}/{shipped_reference()}"), store.stowplan_from_nothing(tree, progress)


@contextmanager
def _store(progress: ProgressLine) -> Iterator[_Store]:
    directory = cache_directory() / "images"
    with hold_lock(
        directory / ".lock", on_wait=lambda: progress.say("waiting for another build of images to finish")
    ):
        yield _Store(directory)


def shipped_reference() -> str:
    """Return the image reference in the manifests."""
    text = (ROOT / "manifests" / "base" / "deployments.yaml").read_text(encoding="utf-8")
    (reference,) = set(re.findall(r"^\s*image: (\S+)$", text, re.MULTILINE))
    return str(reference)


def base_reference() -> str:
    """Return the base image in the Dockerfile's stages."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (reference,) = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    return str(reference)


@dataclass(frozen=True, slots=True)
class _Store:
    """A private storage of images and of cached layers."""

    directory: Path

    def sandbox(self) -> ArchiveImage:
        if not self._has(SANDBOX):
            container = self._buildah("from", "scratch")
            self._buildah("copy", "--quiet", container, "/usr/bin/catatonit", "/catatonit")
            self._buildah("config", "--entrypoint", '["/catatonit", "-P"]', container)
            self._buildah("commit", "--quiet", "--rm", container, SANDBOX)
        return self._export(SANDBOX)

    def stowplan(self, base: Path, progress: ProgressLine) -> ArchiveImage:
        base_name = f"{_REGISTRY}/{base_reference()}"
        if not self._has(base_name, f"stowplan.base={base.stem}"):
            container = self._buildah("from", "scratch")
            self._buildah("add", "--quiet", container, str(base), "/")
            self._buildah("config", "--label", f"stowplan.base={base.stem}", container)
            self._buildah("commit", "--quiet", "--rm", container, base_name)
        progress.say("building the image: from nothing a minute and a half, else some seconds")
        name = f"{_REGISTRY}/{shipped_reference()}"
        volumes = self._volumes(progress)
        # The tag keeps the layers of the first stage; untagged ones are from earlier builds.
        self._build("--target=build", "--tag=localhost/stowplan-build", *volumes, str(ROOT))
        self._build(f"--tag={name}", *volumes, str(ROOT))
        self._buildah("rmi", "--prune")
        return self._export(name)

    def stowplan_from_nothing(self, tree: Path, progress: ProgressLine) -> str:
        self._build("--no-cache", f"--tag={_AGAIN}", *self._volumes(progress), str(tree))
        digest = self.digest(_AGAIN)
        self._buildah("rmi", _AGAIN)
        self._buildah("rmi", "--prune")
        return digest

    def digest(self, name: str) -> str:
        return self._buildah("inspect", "--type=image", "--format={{.FromImageID}}", name)

    def _volumes(self, progress: ProgressLine) -> tuple[str, str]:
        """Return the volumes with the wheels and with a pip configuration that uses nothing else."""
        locks = (ROOT / "requirements-build.lock", ROOT / "requirements.lock")
        wheels = provide_wheels(self.directory, locks, progress)
        settings = self.directory / "pip.conf"
        settings.write_text(_NO_INDEX, encoding="ascii")
        return f"--volume={wheels}:/wheels:ro", f"--volume={settings}:/etc/pip.conf:ro"

    def _build(self, *options: str) -> None:
        isolation = "--isolation=chroot"  # needs neither a daemon nor its own network
        self._buildah("build", isolation, "--pull-never", "--layers", "--timestamp=0", *options)

    def _has(self, name: str, label: str = "") -> bool:
        filters = [f"--filter=label={label}"] if label else []
        names = self._buildah("images", *filters, "--format={{.Name}}:{{.Tag}}")
        return name in names.split()

    def _export(self, name: str) -> ArchiveImage:
        archive = self.directory / f"{name.rpartition('/')[2].replace(':', '-')}-{self.digest(name)[:12]}.tar"
        if not archive.exists():
            for older in self.directory.glob(f"{archive.name.rpartition('-')[0]}-*.tar"):
                older.unlink()
            self._buildah("push", "--quiet", name, f"docker-archive:{archive}:{name}")
        return ArchiveImage(name=name, archive=str(archive), layer_bytes=_layer_bytes(archive))

    def _buildah(self, *arguments: str) -> str:
        storage = [f"--root={self.directory / 'storage'}", f"--runroot={self.directory / 'running'}"]
        finished = subprocess.run(
            ["buildah", *storage, "--storage-driver=overlay", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if finished.returncode != 0:
            output = f"{finished.stdout[-3000:]}\n{finished.stderr[-2000:]}".strip()
            raise ControlPlaneError(f"buildah {arguments[0]} failed:\n{output}")
        return finished.stdout.strip()


def _layer_bytes(archive: Path) -> tuple[int, ...]:
    with tarfile.open(archive) as opened:
        content = opened.extractfile("manifest.json")
        assert content is not None
        manifests: list[dict[str, Any]] = json.load(content)
        return tuple(opened.getmember(layer).size for layer in manifests[0]["Layers"])
