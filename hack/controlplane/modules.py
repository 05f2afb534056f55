"""The Go modules next to this file, and the programs that each of them builds."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Binary:
    """One program of the control plane."""

    name: str
    """Its name on `PATH` and in the cache."""

    package: str
    """The Go package to build it from."""

    requirement: str
    """The module path whose version is the program's version."""

    version_arguments: tuple[str, ...] = ("--version",)
    """Arguments with which the program prints its version."""

    @property
    def built_name(self) -> str:
        """The file name in `go build -o DIRECTORY/`: the last path element that is not a version."""
        return next(part for part in reversed(self.package.split("/")) if not re.fullmatch(r"v\d+", part))


@dataclass(frozen=True, kw_only=True, slots=True)
class GoModule:
    """A directory with a `go.mod` that pins the versions to build."""

    folder: Path
    binaries: tuple[Binary, ...]
    linker_flags: str
    """Format string with `{version}`, `{major}` and `{minor}` of the first program's requirement."""

    usual_minutes: int
    """Duration in minutes of the first build on two cores."""

    def version(self, binary: Binary) -> str:
        """Return the version of a program that `go.mod` requires, such as `1.36.3`."""
        text = (self.folder / "go.mod").read_text()
        match = re.search(rf"^\s*(?:require )?{re.escape(binary.requirement)} v(\S+)", text, re.MULTILINE)
        if match is None:
            raise LookupError(f"{self.folder / 'go.mod'} does not require {binary.requirement}")
        return _release(match.group(1))

    def rendered_linker_flags(self) -> str:
        """Return the linker flags with versions filled in, so that the programs print their version."""
        version = self.version(self.binaries[0])
        major, minor, _ = version.split(".", 2)
        return self.linker_flags.format(version=version, major=major, minor=minor)

    def cache_key(self) -> str:
        """Return the cache directory's name, from version, machine and a digest of the build's inputs."""
        digest = hashlib.sha256(self.linker_flags.encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        version = self.version(self.binaries[0])
        return f"{self.folder.name}-{version}-{platform.machine()}-{digest.hexdigest()[:12]}"

    def go_version(self) -> str:
        """Return the minimum Go version in `go.mod`, such as `1.26.0`."""
        match = re.search(r"^go (\S+)$", (self.folder / "go.mod").read_text(), re.MULTILINE)
        if match is None:
            raise LookupError(f"{self.folder / 'go.mod'} names no Go version")
        return match.group(1)


def _release(module_version: str) -> str:
    """Translate a Go module version: Prometheus publishes its release 3.15.0 to Go as 0.315.0."""
    folded = re.fullmatch(r"0\.(\d)(\d\d)\.(.+)", module_version)
    if folded is None:
        return module_version
    major, minor, patch = folded.groups()
    return f"{major}.{int(minor)}.{patch}"


_KUBERNETES_LINKER_FLAGS = (
    "-s -w"
    " -X k8s.io/component-base/version.gitVersion=v{version}"
    " -X k8s.io/component-base/version.gitMajor={major}"
    " -X k8s.io/component-base/version.gitMinor={minor}"
    " -X k8s.io/client-go/pkg/version.gitVersion=v{version}"
)

KUBERNETES = GoModule(
    folder=_HERE / "kubernetes",
    binaries=(
        *(
            Binary(
                name=name,
                package=f"k8s.io/kubernetes/cmd/{name}",
                requirement="k8s.io/kubernetes",
                version_arguments=("version", "--client") if name == "kubectl" else ("--version",),
            )
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        ),
        Binary(
            name="etcd",
            package="go.etcd.io/etcd/server/v3",
            requirement="go.etcd.io/etcd/server/v3",
        ),
    ),
    linker_flags=_KUBERNETES_LINKER_FLAGS,
    usual_minutes=8,
)
"""Kubernetes and etcd."""

OLDEST_KUBERNETES = replace(KUBERNETES, folder=_HERE / "kubernetes-oldest")
"""The same for the oldest supported minor version."""


def chosen_kubernetes(environment: Mapping[str, str]) -> GoModule:
    """Return the release that `$STOWPLAN_KUBERNETES` selects: `newest` (the default) or `oldest`.

    Raises LookupError for other values.
    """
    word = environment.get("STOWPLAN_KUBERNETES", "newest")
    releases = {"newest": KUBERNETES, "oldest": OLDEST_KUBERNETES}
    if word not in releases:
        raise LookupError(f"STOWPLAN_KUBERNETES is {word!r}; it may be {' or '.join(releases)}")
    return releases[word]


KWOK = GoModule(
    folder=_HERE / "kwok",
    binaries=(Binary(name="kwok", package="sigs.k8s.io/kwok/cmd/kwok", requirement="sigs.k8s.io/kwok"),),
    linker_flags="-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v{version}",
    usual_minutes=2,
)
"""Simulates the kubelets of nodes that do not exist."""

PROMETHEUS = GoModule(
    folder=_HERE / "prometheus",
    binaries=tuple(
        Binary(
            name=name,
            package=f"github.com/prometheus/prometheus/cmd/{name}",
            requirement="github.com/prometheus/prometheus",
        )
        for name in ("prometheus", "promtool")
    ),
    linker_flags="-s -w -X github.com/prometheus/common/version.Version={version}",
    usual_minutes=6,
)
"""For tests that read metrics from Prometheus, and tests of alerts."""
