"""Keeps what the node writes away from the machine's own folders and settings, in a mount namespace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_KERNEL_SETTINGS: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet wants to find, and sets for the whole machine when it does not."""


def shield(directory: Path) -> None:
    """Cover the folders that node programs write to whatever they are told, and the kernel's settings.

    `/run` is empty afterwards; what is written to `/var` lands in `directory`.
    """
    _mount("-t", "tmpfs", "tmpfs", "/run")
    upper, work = directory / "var", directory / "var-work"
    for folder in (upper, work):
        folder.mkdir()
    _mount("-t", "overlay", "-o", f"lowerdir=/var,upperdir={upper},workdir={work}", "overlay", "/var")
    for name, value in _KERNEL_SETTINGS.items():
        shown = directory / name.replace("/", "-")
        shown.write_text(f"{value}\n", encoding="ascii")
        _mount("--bind", str(shown), f"/proc/sys/{name}")


def _mount(*arguments: str) -> None:
    subprocess.run(["/usr/bin/mount", *arguments], check=True)


def uncover(directory: Path) -> None:
    """Take away what was mounted below a folder, so that it can be removed; whoever uses it keeps it."""
    mounted = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    below = [path for path in mounted if path.startswith(f"{directory}/")]
    if below:
        subprocess.run(["/usr/bin/umount", "--lazy", *reversed(below)], check=True)
