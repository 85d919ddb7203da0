#!/usr/bin/env python3
"""Packs the logs of `.ci/gpu run` into one file that is small enough to be carried.

Usage: gpu_pack.py FOLDER FILE

Of a long file the end is kept; what goes beyond the limit of all is left out, the longest first, and is named in
`left-out.txt`.
"""

import io
import sys
import tarfile
from pathlib import Path

# Of one file, and of all together before they are packed: texts shrink to a tenth, and 16 MiB are what a file may have.
ONE, ALL = 1 << 20, 48 << 20


def kept(folder: Path, one: int = ONE, most: int = ALL) -> tuple[list[Path], list[Path]]:
    """Files to be packed, and those left out."""
    sized = sorted((min(file.stat().st_size, one), file) for file in folder.rglob("*") if file.is_file())
    taken, left, total = [], [], 0
    for size, file in sized:
        total += size
        (taken if total <= most else left).append(file)
    return taken, left


def end_of(file: Path, one: int = ONE) -> bytes:
    """The end of a file, with a line that says so where it is not all of it."""
    data = file.read_bytes()
    if len(data) <= one:
        return data
    return f"... the last {one} of {len(data)} bytes\n".encode() + data[-one:]


def pack(folder: Path, target: Path) -> None:
    """Writes the archive."""
    taken, left = kept(folder)
    texts = {file.relative_to(folder).as_posix(): end_of(file) for file in taken}
    if left:
        texts["left-out.txt"] = "\n".join(file.relative_to(folder).as_posix() for file in left).encode()
    with tarfile.open(target, "w:xz", preset=3) as archive:
        for name in sorted(texts):
            entry = tarfile.TarInfo(f"logs/{name}")
            entry.size = len(texts[name])
            archive.addfile(entry, io.BytesIO(texts[name]))


def main() -> int:
    """Exit status."""
    folder, target = (Path(word) for word in sys.argv[1:])
    pack(folder, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
