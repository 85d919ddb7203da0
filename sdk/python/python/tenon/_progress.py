"""Progress bars of training loops: those of tqdm where it is installed, else a line on the standard error."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO, TypeVar

from .train import Hook

__all__ = ["Progress", "progress"]

_T = TypeVar("_T")
_WIDTH = 30
#: Seconds between two drawings.
_EVERY = 0.1


class _Line:
    """A bar on one line of a terminal; elsewhere one line at the end."""

    def __init__(self, total: int | None, description: str, file: TextIO | None) -> None:
        self._total = total
        self._description = description
        self._file = file or sys.stderr
        self._begin = self._drawn = time.monotonic()
        self._count = 0

    def update(self, count: int = 1) -> None:
        self._count += count
        now = time.monotonic()
        if self._file.isatty() and now - self._drawn >= _EVERY:
            self._drawn = now
            self._file.write("\r" + self._text())
            self._file.flush()

    def _text(self) -> str:
        took = max(time.monotonic() - self._begin, 1e-9)
        rate = f"{self._count / took:.1f}/s"
        label = f"{self._description}: " if self._description else ""
        if not self._total:
            return f"{label}{self._count} [{took:.1f} s, {rate}]"
        share = min(self._count / self._total, 1.0)
        bar = ("#" * round(share * _WIDTH)).ljust(_WIDTH)
        return f"{label}|{bar}| {self._count}/{self._total} [{took:.1f} s, {rate}]"

    def close(self) -> None:
        begin = "\r" if self._file.isatty() else ""
        self._file.write(f"{begin}{self._text()}\n")
        self._file.flush()


def _bar(total: int | None, description: str, file: TextIO | None) -> Any:
    if importlib.util.find_spec("tqdm"):
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

        return tqdm(total=total, desc=description or None, file=file)
    return _Line(total, description, file)


def progress(
    items: Iterable[_T], *, total: int | None = None, description: str = "", file: TextIO | None = None
) -> Iterator[_T]:
    """Gives the items, and shows how many there were: ``for batch in tenon.progress(batches):``."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    bar = _bar(total, description, file)
    try:
        for item in items:
            yield item
            bar.update(1)
    finally:
        bar.close()


class Progress(Hook):
    """A hook of a training that shows how many steps there were: ``train.MonitoredSession(hooks=[tenon.Progress(1000)])``."""

    def __init__(self, total: int | None = None, *, description: str = "", file: TextIO | None = None) -> None:
        self._given = (total, description, file)
        self._bar: Any = None

    def begin(self) -> None:
        self._bar = _bar(*self._given)

    def after_run(self, values: list[Any]) -> bool | None:
        self._bar.update(1)
        return None

    def end(self) -> None:
        self._bar.close()
