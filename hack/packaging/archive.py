"""A reproducible archive."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping


def archive(files: Mapping[str, bytes], *, folder: str, built_time: int) -> bytes:
    """Return a .tgz of files in a folder, all with one time in seconds since 1970 and without an owner."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as opened,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), built_time, 0o644
            opened.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
