"""What a tool said of a file, kept from run to run: disassembling takes longest, and few kernels change at a time."""

import hashlib
import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import toolchain


class Notes:
    """A folder of answers. Each has the name of its question: the file's content and name, the tools' versions."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.versions = toolchain.REQUIREMENTS.read_bytes()

    def remembered(self, file: Path, ask: Callable[[], str]) -> str:
        """The answer for a file: an earlier one, else that of `ask`."""
        parts = [self.versions, file.name.encode(), file.read_bytes()]
        name = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
        note = self.folder / name
        try:
            return zlib.decompress(note.read_bytes()).decode()
        except (OSError, ValueError, zlib.error):
            # None, or half of one: it is asked for again.
            answer = ask()
        part = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
        part.write_bytes(zlib.compress(answer.encode(), 1))
        part.replace(note)
        return answer
