"""Events of the runtime as records of `logging`, below the logger ``tenon``."""

from __future__ import annotations

import logging

from . import _native

_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG, 5: 5}


def emit(level: int, target: str, text: str) -> None:
    """Passes an event on to the logger of its origin."""
    name = target if target.startswith("tenon.") else "tenon." + target.removeprefix("tenon_")
    logger = logging.getLogger(name)
    number = _LEVELS.get(level, logging.INFO)
    if logger.isEnabledFor(number):
        logger.log(number, "%s", text)


class _Follower(logging.Logger):
    """A logger whose level is the runtime's as well."""

    def setLevel(self, level: int | str) -> None:  # noqa: N802 (the name is logging's)
        super().setLevel(level)
        _follow(self)


def _follow(logger: logging.Logger) -> None:
    effective = logger.getEffectiveLevel()
    passed = [number for number, level in _LEVELS.items() if level >= effective]
    _native.set_log_level(max(passed, default=0))


def follow() -> None:
    """Makes the level of the logger ``tenon`` the runtime's, now and when it is set."""
    logger = logging.getLogger("tenon")
    if type(logger) is logging.Logger:
        logger.__class__ = _Follower
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    _follow(logger)


def flush() -> None:
    """Waits until all events so far have been passed on."""
    _native.flush_logs()
