"""A mount namespace that protects the machine's own directories and settings from the node's writes."""

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
"""Settings that a kubelet requires, and sets for the whole machine if they differ."""


def shield(directory: Path) -> None:
    """Cover the directories that node programs always write to, and the kernel's settings.

    `/run` is empty afterwards; writes to `/var` go to `directory`.
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
    """Unmount everything below a directory lazily, so that it can be removed while still in use."""
    mounted = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    below = [path for path in mounted if path.startswith(f"{directory}/")]
    if below:
        subprocess.run(["/usr/bin/umount", "--lazy", *reversed(below)], check=True)
