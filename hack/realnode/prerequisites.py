"""Requirements of a real node, and the Debian packages that are installed if missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine

SUITE: Final = "bookworm"
"""The Debian release with the Python version of the image."""

PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Directories in which packages install commands."""

CNI_PLUGINS: Final = Path("/usr/lib/cni")

_PACKAGES: Final = {
    "runc": "runc",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "catatonit": "catatonit",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
}
_CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer")


class PrerequisitesMissingError(ControlPlaneError):
    """This machine cannot run a real node; the message lists everything that is missing."""


def missing_requirements() -> list[str]:
    """Return messages about missing requirements that no package provides; empty if there are none."""
    if os.geteuid() != 0:
        return ["root: namespaces, mounts and cgroups are made"]  # without it, the checks below mean nothing
    messages = []
    if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        messages.append(
            f"Debian 12 ({SUITE}): runc, buildah, CNI plugins and the base of the image are its packages"
        )
    filesystems = Path("/proc/filesystems").read_text(encoding="ascii").split()
    if "overlay" not in filesystems:
        messages.append("the file system overlay in the kernel")
    if not all(Path(f"/sys/fs/cgroup/{name}").is_dir() for name in _CONTROLLERS):
        messages.append(
            f"cgroup v1 with the controllers {', '.join(_CONTROLLERS)} at /sys/fs/cgroup (v2 is untried)"
        )
    return messages + _missing_in_namespaces()


def _missing_in_namespaces() -> list[str]:
    """Try the node's network operations in a temporary network namespace."""
    attempts = {
        "namespaces for network, mounts and processes": "true",
        "bridge interfaces": "ip link add name probe type bridge",
        "veth interfaces": "ip link add name probe type veth peer name prober",
        "IP forwarding": "echo 1 > /proc/sys/net/ipv4/ip_forward",
    }
    if shutil.which("nft", path=PATH) is not None:
        rule = "add table ip probe; add chain ip probe nat {type nat hook output priority -100;}"
        attempts["address translation by nftables"] = f"nft '{rule}'"
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]
    messages = []
    for what, attempt in attempts.items():
        try:
            finished = subprocess.run([*command, attempt], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return ["unshare, of the package util-linux"]
        if finished.returncode != 0:
            messages.append(f"{what}: {finished.stderr.strip()}")
    return messages


def missing_packages() -> list[str]:
    """Return the Debian packages that `require` would install."""
    packages = {package for command, package in _PACKAGES.items() if shutil.which(command, path=PATH) is None}
    if not (CNI_PLUGINS / "ptp").exists():
        packages.add("containernetworking-plugins")
    return sorted(packages)


def require(progress: ProgressLine) -> None:
    """Install missing packages. Raises PrerequisitesMissingError with everything that is unavailable."""
    if lacking := missing_requirements():
        raise PrerequisitesMissingError(
            "a real node requires packages that are missing here: " + "; ".join(lacking)
        )
    if packages := missing_packages():
        install(packages, progress)
        require(progress)  # nftables could not be checked before


def install(packages: list[str], progress: ProgressLine) -> None:
    """Install Debian packages, as root. Raises PrerequisitesMissingError."""
    progress.say(f"installing Debian packages: apt-get install {' '.join(packages)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        finished = subprocess.run(
            ["apt-get", "--quiet", *command], env=environment, capture_output=True, text=True, check=False
        )
        if finished.returncode != 0:
            raise PrerequisitesMissingError(
                f"these Debian packages are missing and could not be installed: {' '.join(packages)}\n"
                + finished.stderr[-2000:]
            )
