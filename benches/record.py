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
# The rows of elementwise ops and of layers: bytes of the smallest possible traffic, or operations, per iteration.
SIZES = {"1e3": 1000, "1e5": 100_000, "1e7": 10_000_000}
LAYERS = {
    "depthwise_c32-32_112x112_k3s1": 112 * 112 * 32 * 9 * 2,
    "depthwise_c128-128_56x56_k3s1": 56 * 56 * 128 * 9 * 2,
    "depthwise_c512-512_14x14_k3s1": 14 * 14 * 512 * 9 * 2,
    "maxpool_c64-64_112x112_k3s2": 56 * 56 * 64 * 9,
    "maxpool_c64-64_224x224_k2s2": 112 * 112 * 64 * 4,
}


def row(name):
    """Bench, size, threads, work and unit of an id of the bench `rows`."""
    bench, size, threads = name.split("/")
    if bench == "conv":
        return bench, size, int(threads), LAYERS[size], "GFLOP/s"
    op, count = size.rsplit("_", 1)
    n = SIZES[count]
    if op in ("softmax", "layernorm", "sum_rows") and n >= 2000:
        n = n // 1024 * 1024
    outputs = {"sum_all": 1, "sum_rows": n // 1024}.get(op, n)
    return bench, size, int(threads), 4 * (n * (2 if op == "add" else 1) + outputs), "GB/s"


# The forms of the bench `int8`, as the peers' scripts name them.
PRODUCTS = {"u8s8s32": "gemm_u8s8s32_packedB", "pipeline": "gemm_u8u8_requant_u8_packedB"}


def product(name):
    """Bench, size, threads, work and unit of an id of the bench `int8`."""
    _, form, size, *threads = name.split("/")
    m, n, k = map(int, size.split("x"))
    return PRODUCTS[form], size, int(threads[0]) if threads else 1, 2 * m * n * k, "GOP/s"


def rows(target):
    """All results of the benches `rows` and `int8` under a target folder."""
    for folder in sorted((target / "criterion").glob("*/new")):
        about = json.loads((folder / "benchmark.json").read_text())
        name = about["full_id"]
        if name.split("/")[0] in ("elementwise", "conv") and name.count("/") == 2:
            yield name, folder, row(name)
        elif name.startswith("int8/"):
            yield name, folder, product(name)


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
    found = []
    for name, (bench, size, work, unit) in NAMES.items():
        folder = target / "criterion" / name.replace("/", os.sep) / "new"
        if not folder.is_dir():
            folder = target / "criterion" / name.replace("/", "_") / "new"
        if not folder.is_dir():
            print(f"# no result for {name}", file=sys.stderr)
            continue
        found.append((name, folder, (bench, size, 1, work, unit)))
    for name, folder, (bench, size, threads, work, unit) in [*found, *rows(target)]:
        times = samples(folder)
        median = times[len(times) // 2]
        line = {
            "bench": bench,
            "peer": "tenon",
            "version": "0.1.0",
            "size": size,
            "threads": threads,
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
