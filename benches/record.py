#!/usr/bin/env python3
"""Prints criterion's last results as JSON lines, in the form in which the peers' scripts print theirs:
bench, peer, version, size, threads, median_ns, min_ns, max_ns, samples, rate, best_rate, unit.

Usage: record.py [TARGET_DIR | --machine] > benches/records/DATE-NAME.jsonl
The first line says what machine and which commit; with --machine it is the only one. `rate` is work per nanosecond at the median: operations
for chains and wide graphs, runs for the rest.
"""
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

# id of criterion -> bench and size as the peers' scripts name them, operations per iteration, unit
NAMES = {
    "executor/chain_1000": ("chain_ops", "1000", 1000, "Gop/s"),
    "executor/mixed_1000": ("mixed_ops", "1000", 1000, "Gop/s"),
    "executor/wide_1000": ("wide_ops", "1000", 1000, "Gop/s"),
    "executor/run_1": ("chain_ops", "1", 1, "Gop/s"),
    "executor/subgraph": ("subgraph", "1x64x64+bias+relu", 1, "Grun/s"),
    "dispatch/plugin_call": ("plugin_call", "1", 1, "Gop/s"),
    "dispatch/linked_call": ("linked_call", "1", 1, "Gop/s"),
    "load/plugin_500": ("load_plugin", "500", 1, "Grun/s"),
}


def machine():
    """Where and on what the figures were taken."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    git = ["git", "describe", "--always", "--dirty"]
    rustc = ["rustc", "--version"]
    text = lambda command: subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "date": text(["date", "-u", "+%Y-%m-%d"]),
        "commit": text(git),
        "rustc": text(rustc),
        "kernel": platform.release(),
    }


def samples(folder):
    """Nanoseconds per iteration, sorted."""
    data = json.loads((folder / "sample.json").read_text())
    return sorted(time / count for time, count in zip(data["times"], data["iters"]))


def main():
    target = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CARGO_TARGET_DIR", "target"))
    print(json.dumps(machine()))
    if target == Path("--machine"):
        return
    for name, (bench, size, work, unit) in NAMES.items():
        folder = target / "criterion" / name.replace("/", os.sep) / "new"
        if not folder.is_dir():
            folder = target / "criterion" / name.replace("/", "_") / "new"
        if not folder.is_dir():
            print(f"# no result for {name}", file=sys.stderr)
            continue
        times = samples(folder)
        median = times[len(times) // 2]
        line = {
            "bench": bench,
            "peer": "tenon",
            "version": "0.1.0",
            "size": size,
            "threads": 1,
            "median_ns": round(median, 2),
            "min_ns": round(times[0], 2),
            "max_ns": round(times[-1], 2),
            "samples": len(times),
            "rate": float(f"{work / median:.5g}"),
            "best_rate": float(f"{work / times[0]:.5g}"),
            "unit": unit,
            "id": name,
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
