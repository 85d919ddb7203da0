"""How every side is timed, and the JSON line that says what came of it."""

import gc
import json
import os
import sys
import time
from collections.abc import Callable

# One sample is at least so long: back-to-back calls, so that the clock's own cost vanishes.
SAMPLE_NS = 2e6
FEWEST, MOST = 5, 61


def measure(call: Callable[[], object], seconds: float) -> list[float]:
    """Nanoseconds per call, sorted: samples for about `seconds`, `FEWEST` of them however long they take."""
    call()
    call()
    pin_caller()
    calls = calls_per_sample(call)
    samples: list[float] = []
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    while len(samples) < FEWEST or (len(samples) < MOST and time.perf_counter() - start < seconds):
        samples.append(timed(call, calls))
    gc.enable()
    return sorted(samples)


def timed(call: Callable[[], object], calls: int) -> float:
    """Nanoseconds per call of so many calls."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return (time.perf_counter_ns() - start) / calls


def calls_per_sample(call: Callable[[], object]) -> int:
    """How many calls fill a sample; asked twice, since the first answer is a single call's."""
    calls = 1
    for _ in range(2):
        calls = max(1, int(SAMPLE_NS / max(timed(call, calls), 1.0)))
    return calls


def pin_caller() -> None:
    """Keeps the caller on the first core, once the library has made its threads: c/pinshim.c keeps those on others."""
    if os.environ.get("PIN_ORDER"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def line(row: dict[str, object], samples: list[float], work: float, unit: str, **more: object) -> None:
    """Prints a result. `row` says bench, peer, version, size and threads; `work` is operations or bytes per call, so
    that the rate is in thousands of millions per second."""
    median = samples[len(samples) // 2]
    times = {"median_ns": median, "min_ns": samples[0], "max_ns": samples[-1]}
    rates = {"rate": work / median, "best_rate": work / samples[0]}
    told = row | {key: round(value, 2) for key, value in times.items()} | {"samples": len(samples)}
    told |= {key: float(f"{value:.5g}") for key, value in rates.items()}
    print(json.dumps(told | {"unit": unit} | more | {"cpu": cpu()}), flush=True)


def skip(what: str, why: object) -> None:
    """Says on the error stream what was not measured."""
    print(f"# skipped {what}: {' '.join(str(why).split())[:300]}", file=sys.stderr, flush=True)


def cpu() -> str:
    """The processor's name."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [text.split(":", 1)[1].strip() for text in info if text.startswith("model name")]
    return names[0] if names else "unknown"


def peak_rss() -> int:
    """Bytes that this process has held at once, at the most (VmHWM)."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(text.split()[1]) * 1024 for text in status if text.startswith("VmHWM:"))
