"""Measuring calls: ``tenon.bench(step, x)``."""

from __future__ import annotations

import html
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import InvalidArgumentError

__all__ = ["Rows", "bench"]

#: What a row has, in this order.
COLUMNS = ("name", "calls", "min_us", "median_us", "p95_us", "mean_us", "calls_per_s")


class Rows(list[dict[str, Any]]):
    """What was measured: a row for each function."""

    def frame(self) -> Any:
        """The rows as a DataFrame of pandas."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(list(self), columns=list(COLUMNS))

    def __str__(self) -> str:
        cells = [list(COLUMNS), *([_cell(row[column]) for column in COLUMNS] for row in self)]
        widths = [max(len(line[at]) for line in cells) for at in range(len(COLUMNS))]
        lines = ("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in COLUMNS)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(_cell(row[column]))}</td>' for column in COLUMNS)}</tr>" for row in self
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _batches(call: Callable[[], Any], seconds: float) -> Iterator[tuple[float, int]]:
    """Times of batches of calls, each of which lasts at least as long as the clock needs to tell it."""
    count = 1
    while True:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        took = time.perf_counter() - begin
        if took >= 50e-6 or took >= seconds:
            break
        count *= 2
    end = time.perf_counter() + seconds
    first = True
    while first or time.perf_counter() < end:
        first = False
        begin = time.perf_counter()
        for _ in range(count):
            call()
        yield (time.perf_counter() - begin) / count, count


def _row(name: str, call: Callable[[], Any], seconds: float) -> dict[str, Any]:
    measured = list(_batches(call, seconds))
    times = sorted(took * 1e6 for took, _ in measured)
    mean = statistics.fmean(times)
    values = (
        name,
        sum(count for _, count in measured),
        times[0],
        statistics.median(times),
        times[min(len(times) - 1, int(len(times) * 0.95))],
        mean,
        1e6 / mean if mean else float("inf"),
    )
    return dict(zip(COLUMNS, values))


def bench(
    function: Callable[..., Any] | Mapping[str, Callable[[], Any]],
    *args: Any,
    seconds: float = 0.5,
    name: str | None = None,
) -> Any:
    """Measures how long a call takes: of a `tenon.Callable`, a session's step, or any function.

    ``bench(step, x)`` calls ``step(x)``; ``bench({"a": first, "b": second})`` compares functions without arguments. Each is called for
    `seconds`, after calls that warm up, in batches that the clock can tell. Times are microseconds of a call: the smallest, the median,
    the one below which 95 % of the batches are, and the mean. Returns a DataFrame where pandas is installed, else `Rows`.
    """
    if seconds <= 0:
        raise InvalidArgumentError(f"seconds: expected a number above 0, found {seconds}")
    if isinstance(function, Mapping):
        if args:
            raise InvalidArgumentError("expected functions without arguments in a dict, found arguments")
        calls: Mapping[str, Callable[[], Any]] = function
    else:
        own = str(name or getattr(function, "__name__", type(function).__name__))
        calls = {own: lambda: function(*args)}
    rows = Rows(_row(label, call, seconds) for label, call in calls.items())
    return rows.frame() if importlib.util.find_spec("pandas") else rows
