"""Runs programs so that nothing of them is left on the GPU: what one of them started ends with it.

`timeout` ends this script's group; each program has a group of its own, so that the whole of it can be ended when its own
time is up, and is ended too when this script is.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """What became of a program. `status` is None where it did not end in time."""

    status: int | None
    out: str
    err: str


_running: set[int] = set()
_lock = threading.Lock()


def run(command: list[str], limit: float, env: Mapping[str, str] | None = None) -> Done:
    """Runs a program for at most `limit` seconds. Raises OSError where it cannot be started."""
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=env, start_new_session=True,
    )
    with _lock:
        _running.add(child.pid)
    try:
        out, err = child.communicate(timeout=limit)
        return Done(child.returncode, out, err)
    except subprocess.TimeoutExpired:
        end(child.pid)
        try:
            out, err = child.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            # Something left the group and holds the pipes.
            out, err = "", "it was ended, and what it started was not"
        return Done(None, out, err)
    finally:
        # Also where the program ended and something that it started did not.
        end(child.pid)
        with _lock:
            _running.discard(child.pid)


def end(group: int) -> None:
    """Ends a group, if there is anything of it."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def end_all_with_this_script() -> None:
    """Has SIGTERM end what runs, and this script."""

    def ended(number: int, _frame: object) -> None:
        for group in list(_running):
            end(group)
        sys.stdout.flush()
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, ended)
