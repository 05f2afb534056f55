"""Runs a command in its own namespaces, and removes the cgroup that outlives them.

Network, mounts and processes end with the command, however it ends: when its first process ends, the kernel
kills the others, and interfaces and mounts disappear with the last one. A cgroup does not. It is named after
the process that created it, so that the next run can remove those left by killed ones.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from hack.controlplane import tether

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


_HIERARCHIES: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "stowplan-"
_PATIENCE_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05


def cgroup_name() -> str:
    """Return the name of the cgroup that `run_inside` creates in this process."""
    return f"{_PREFIX}{os.getpid()}"


def run_inside(command: list[str], environment: Mapping[str, str]) -> int:
    """Run a command in new namespaces and return its exit code.

    Ctrl-C is delivered to the command. SIGTERM, or the end of this process, kills it at once.
    """
    for left in _cgroups():
        if not Path(f"/proc/{left.removeprefix(_PREFIX)}").exists():
            _remove_cgroup(left)
    with _cgroup(cgroup_name()), _interrupts_left_to_the_command():
        unshare = ["/usr/bin/unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        # catatonit reaps orphans of containers, like the init process of every container engine.
        waiting = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid())),
                *(*unshare, "/usr/bin/catatonit", "--", *command),
            ],
            env=os.environ | environment,
        )
        signal.signal(signal.SIGTERM, lambda _number, _frame: waiting.kill())
        return waiting.wait()


@contextlib.contextmanager
def _interrupts_left_to_the_command() -> Iterator[None]:
    def ignore(_number: int, _frame: FrameType | None) -> None:
        """Do nothing; unlike SIG_IGN, this handler is not inherited by the command."""

    before = signal.signal(signal.SIGINT, ignore)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _cgroup(name: str) -> Iterator[None]:
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir()
        _copy_cpuset(hierarchy / name)
    try:
        yield
    finally:
        _remove_cgroup(name)


def _copy_cpuset(group: Path) -> None:
    """Copy the parent's cpuset, because a new cpuset is empty and accepts no process."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (group / file).exists():
            (group / file).write_text((group.parent / file).read_text())


def _hierarchies() -> list[Path]:
    """Return the directory of each cgroup v1 hierarchy once, without symbolic links."""
    folders = (path for path in _HIERARCHIES.iterdir() if path.is_dir() and not path.is_symlink())
    return [path for path in folders if (path / "cgroup.procs").exists()]


def _cgroups() -> set[str]:
    return {path.name for hierarchy in _hierarchies() for path in hierarchy.glob(f"{_PREFIX}[0-9]*")}


def _remove_cgroup(name: str) -> None:
    """Remove a cgroup and its descendants, waiting for the kernel to remove their last processes."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for hierarchy in _hierarchies():
        if not (hierarchy / name).exists():
            continue
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            _remove_folder(Path(folder), deadline)


def _remove_folder(folder: Path, deadline: float) -> None:
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return
