#!/usr/bin/env python3
"""Runs TensorFlow's golden graphs with CPU and GPU, and holds them against TensorFlow's results and the CPU's.

Usage: golden_graphs.py TENON GOLDENS WORK [--without-gpu] [--dry]

GOLDENS holds index.json, graphs and arrays (tests/goldens/frozen). Each run of each graph goes through `tenon bench`,
which compares with the values in the file and with the graph as it is written before it times anything, once as nodes are
placed where there is a GPU, and once with the CPU alone. A graph of which no node ran on the GPU is a failure, since it
says nothing about it; not so with --without-gpu, which tests this script.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import gpu_procs

# Seconds for one run, of which a GPU needs one: what hangs leaves time for the others.
LIMIT = 20.0
# Those of Keras keep placeholders that nothing is fed through, for which `tenon bench` wants a value.
GRAPHS = ("mlp", "bert_layer", "resnet50", "mobilenet_v2", "vgg19")
# The knob that leaves no GPU to the plugin.
NO_GPU = "cuda.devices=0"


def repack(arrays: Path, run: dict, file: Path) -> None:
    """One run's arrays, under the names of the placeholders and tensors that they belong to."""
    with zipfile.ZipFile(arrays) as source, zipfile.ZipFile(file, "w") as target:
        for each in [*run["feeds"], *run["fetches"]]:
            name = each["tensor"].removesuffix(":0")
            target.writestr(f"{name}.npy", source.read(f"{each['array']}.npy"))


def runs(goldens: Path, work: Path) -> Iterator[tuple[str, Path, Path]]:
    """Name, graph and arrays of each run."""
    index = json.loads((goldens / "index.json").read_text(encoding="utf-8"))
    for graph in (graph for graph in index["graphs"] if graph["name"] in GRAPHS):
        for number, run in enumerate(graph["runs"]):
            file = work / f"{graph['name']}.{number}.npz"
            repack(goldens / graph["arrays"], run, file)
            yield f"{graph['name']} run {number}", goldens / graph["file"], file


def command(tenon: Path, graph: Path, data: Path, sets: list[str]) -> list[str]:
    """Compares, and times for hardly any time."""
    told = [str(tenon), "bench", str(graph), "--data", str(data), "--time", "0.01", "--json", "--no-roofline"]
    return told + [part for each in sets for part in ("--set", each)]


def judged(text: str, errors: str, wants_gpu: bool) -> str | None:
    """What is wrong with a run by what `tenon bench` printed."""
    try:
        report = json.loads(text)
    except ValueError:
        return errors.strip()[-400:] or "printed nothing"
    problems = [f"{each['kind']}: {each['message']}" for each in report["problems"] if each["kind"] != "unverified"]
    if problems or not report["records"]:
        return "; ".join(problems) or "gave no record"
    nodes = report["records"][0]["profile"]["nodes"]
    if wants_gpu and not any(":CUDA:" in node["device"] for node in nodes):
        return "no node ran on the GPU"
    return None


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=Path, metavar="TENON")
    parser.add_argument("goldens", type=Path, metavar="GOLDENS")
    parser.add_argument("work", type=Path, metavar="WORK")
    parser.add_argument("--without-gpu", action="store_true")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    gpu_procs.end_all_with_this_script()
    options.work.mkdir(parents=True, exist_ok=True)
    sides = [("CPU", [NO_GPU], False), ("CPU and GPU", [], True)]
    if options.without_gpu:
        sides = [("CPU", [], False)]
    wrong = count = 0
    for name, graph, data in runs(options.goldens, options.work):
        for side, sets, wants_gpu in sides:
            count += 1
            if options.dry:
                continue
            done = gpu_procs.run(command(options.tenon, graph, data, sets), LIMIT)
            late = f"no end within {LIMIT:.0f} s"
            problem = late if done.status is None else judged(done.out, done.err, wants_gpu)
            wrong += problem is not None
            print(f"{name} on {side}: {problem or 'right'}", flush=True)
    print(f"golden_graphs: {count} runs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
