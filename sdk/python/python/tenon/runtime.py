"""The runtime of the process: its devices, plugins and ops."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .dtypes import DType, as_dtype, float32

if TYPE_CHECKING:
    import numpy as np


class Device(NamedTuple):
    """A device on which nodes run."""

    #: The full name, such as ``/job:localhost/replica:0/task:0/device:CPU:0``.
    name: str
    #: The type, such as ``CPU``.
    type: str
    #: What it is.
    description: str


class Devices(list[Device]):
    """Devices, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return _table(["device", "type", "description"], [[device.name, device.type, device.description] for device in self])


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    import html

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


class Plugin(NamedTuple):
    """A library with ops, kernels or devices."""

    name: str
    version: str
    #: The file; `None` for what is linked in.
    path: str | None
    #: Whether it runs in a process of its own.
    isolated: bool
    #: Whether it was taken out of use.
    retired: bool


class Info(NamedTuple):
    """What `tenon list` prints, as an object."""

    version: str
    devices: Devices
    plugins: tuple[Plugin, ...]
    #: The number of ops.
    ops: int
    #: The number of kernels.
    kernels: int

    def __str__(self) -> str:
        lines = [f"tenon {self.version}: {self.ops} ops, {self.kernels} kernels"]
        lines += [f"  plugin {plugin.name} {plugin.version} ({plugin.path or 'linked'})" for plugin in self.plugins]
        lines += [f"  device {device.name} ({device.description})" for device in self.devices]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"tenon {self.version}: {self.ops} ops, {self.kernels} kernels"
        plugins = _table(["plugin", "version"], [[plugin.name, plugin.version] for plugin in self.plugins])
        return f"<div><b>{head}</b>{plugins}{self.devices._repr_html_()}</div>"


def list_devices() -> Devices:
    """The devices of this process."""
    return Devices(Device(*parts) for parts in _native.devices())


def load_plugin(path: str | os.PathLike[str], *, isolated: bool = False) -> list[Plugin]:
    """Loads a plugin, whose ops and devices are then there for new nodes. Sessions that are open take it over by `refresh`."""
    return [Plugin(**found) for found in _native.load_plugin(os.fspath(path), isolated=isolated)]


def show() -> Info:
    """The plugins, devices, ops and kernels of this process."""
    plugins = tuple(Plugin(**found) for found in _native.plugins())
    ops, kernels = len(_native.op_names()), _native.kernel_count()
    return Info(_native.__version__, list_devices(), plugins, ops, kernels)


def empty(shape: int | Sequence[int], dtype: DType | Any = float32) -> np.ndarray[Any, Any]:
    """An array of undefined contents whose memory kernels use as it is: a step that is fed with it copies nothing."""
    dims = [shape] if isinstance(shape, int) else list(shape)
    return _native.empty(dims, as_dtype(dtype))


@contextlib.contextmanager
def profile(path: str | os.PathLike[str]) -> Iterator[None]:
    """Traces the steps of this process that run inside, and writes the trace for ``chrome://tracing`` or Perfetto."""
    _native.begin_trace()
    try:
        yield
    finally:
        _native.end_trace(os.fspath(path))


def check(path: str | os.PathLike[str], *, timeout: float | None = None) -> dict[str, Any]:
    """Tests everything that a plugin promises, by the command ``tenon check``, and returns its report.

    The command is ``tenon`` on the path, or what the environment variable ``TENON_COMMAND`` names. The report has the key
    ``"ok"`` beside what the command prints.
    """
    import json
    import shutil
    import subprocess

    from .errors import FailedPreconditionError, InvalidArgumentError

    command = os.environ.get("TENON_COMMAND") or shutil.which("tenon")
    if not command:
        raise FailedPreconditionError(
            "the command 'tenon' is not on the path: install an archive of Tenon, or name it in TENON_COMMAND"
        )
    ran = subprocess.run(
        [command, "check", os.fspath(path), "--json"], capture_output=True, text=True, timeout=timeout, check=False
    )
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        raise InvalidArgumentError(f"{command} check: {(ran.stderr or ran.stdout).strip()}") from None
    found = report if isinstance(report, dict) else {"report": report}
    return {"ok": ran.returncode == 0, **found}
