#!/usr/bin/env python3
"""Whether graphs run as fast on the kernels that `tenon tune` chooses as on those by priority.

Usage: tuned.py TENON GRAPH.pb[:NAME=SHAPE,...]... [--rounds N] [--threads N] [--set KNOB=VALUE]...
For each graph: it is tuned once, into a folder of its own; then `tenon bench` times its step by priority and by
measurement, turn by turn, every other round the other way round. Prints a JSON line for each graph: the medians of
both in nanoseconds, and the median of the ratios, measured over priority.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def compare(args, graph, shapes, cache):
    file = [graph, "--threads", args.threads, "--json", "--set", f"runtime.tune_cache={cache}"]
    file += ["--shape", shapes] if shapes else []
    file += [argument for knob in args.knobs for argument in ("--set", knob)]
    decisions = run([args.tenon, "tune", *file])
    step = [args.tenon, "bench", *file, "--no-roofline"]
    policies = ["priority", "measured"]
    times = {policy: [] for policy in policies}
    for turn in range(args.rounds):
        for policy in policies if turn % 2 == 0 else reversed(policies):
            report = run([*step, "--set", f"runtime.policy={policy}"])
            if report["problems"] or len(report["records"]) != 1:
                raise SystemExit(f"{graph}, {policy}: {report['problems']}")
            times[policy].append(report["records"][0]["median_ns"])
    ratios = [own / other for own, other in zip(times["measured"], times["priority"])]
    changed = [decision for decision in decisions if decision["chosen"] != decision["by_priority"]]
    return {
        "bench": "tuned",
        "graph": Path(graph).stem,
        "shapes": shapes,
        "knobs": args.knobs,
        "threads": int(args.threads),
        "rounds": args.rounds,
        "nodes_with_a_choice": len(decisions),
        "nodes_changed": len(changed),
        "priority_ns": statistics.median(times["priority"]),
        "measured_ns": statistics.median(times["measured"]),
        "median_ratio": round(statistics.median(ratios), 4),
        "ratios": [round(ratio, 4) for ratio in ratios],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon")
    parser.add_argument("graphs", nargs="+", metavar="GRAPH.pb[:NAME=SHAPE,...]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--set", action="append", default=[], dest="knobs", metavar="KNOB=VALUE")
    args = parser.parse_args()
    for given in args.graphs:
        graph, _, shapes = given.partition(":")
        with tempfile.TemporaryDirectory() as cache:
            print(json.dumps(compare(args, graph, shapes, cache)), flush=True)


if __name__ == "__main__":
    main()
