#!/usr/bin/env python3
"""Measures Tenon on this machine's GPU by `tenon bench`: our lines of `.ci/gpu run`.

Usage: bench_tenon.py TENON GRAPHS --sections products,memory,nodes,copies,models [--seconds 0.3] [--limit 40] [--dry]

TENON is the program, beside its plugins; GRAPHS the folder that make_graphs.py filled. Each command may take --limit
seconds. No result is timed that was not compared first: `tenon bench` sees to that, by the reference kernels for ops, by
PyTorch's values for models. --dry runs no command, and says whether the program knows each option. Exits 1 when a row
could not be measured.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gpu_rows import BATCHES, COPY_BYTES, MEMORY, MEMORY_SIZES, MODEL_DTYPES, MODELS, NODES, PRODUCT_SIZES, PRODUCTS
from gpu_rows import failed, line, product_work, show

# The plugin's knobs. One that the plugin does not have is a failed row, not another meaning.
TF32 = "cuda.allow_tf32"
CAPTURE = "runtime.record_after"
NEVER, ALWAYS, ONCE_SEEN = f"{CAPTURE}=-1", f"{CAPTURE}=0", f"{CAPTURE}=1"
# Convolutions choose their algorithm by measurement on both sides: PyTorch's under cudnn.benchmark. Products do on neither.
SEARCH = "cuda.search_convolutions=true"
# A chain of ops is to stay one.
CHAIN = ("graph.elementwise_fusion=false", "graph.arithmetic=false")


class Tenon:
    """The program."""

    def __init__(self, program: Path, limit: float, gpu: str):
        self.program, self.limit, self.more, self.failures = program, limit, {"gpu": gpu}, 0
        self.commands: list[list[str]] = []

    def bench(self, target: str, *more: str, sets: tuple[str, ...] = ()) -> list[dict]:
        """The records of a run, those of kernels on the GPU that the runtime would choose, and of steps.

        Raises ValueError with what is wrong."""
        command = [str(self.program), "bench", target, *more, "--json", "--no-roofline"]
        for each in sets:
            command += ["--set", each]
        self.commands.append(command)
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=self.limit)
        except subprocess.TimeoutExpired as late:
            raise ValueError(f"no result within {self.limit} s: {' '.join(command)}") from late
        report = read_report(done.stdout)
        records = [record for record in report["records"] if counts(record)]
        if not records:
            problems = [problem["message"] for problem in report["problems"]]
            raise ValueError("; ".join(problems) or done.stderr or "no kernel of the GPU was measured")
        return records

    def row(self, bench: str, size: str, record: dict, work: float, unit: str, peer: str = "tenon") -> None:
        """Prints a record as a row."""
        ns = sorted(record["kernel"]["ns"])
        show(line(bench, peer, size, record["version"], ns, work, unit, **self.more))

    def attempt(self, bench: str, size: str, measure: Callable[[], None], peer: str = "tenon") -> None:
        """A failure is a line."""
        try:
            measure()
        except (ValueError, OSError) as error:
            self.failures += 1
            show(failed(bench, peer, size, error, **self.more))


class Dry(Tenon):
    """Notes commands and runs none."""

    def bench(self, target: str, *more: str, sets: tuple[str, ...] = ()) -> list[dict]:
        """No records."""
        self.commands.append([str(self.program), "bench", target, *more, "--json", "--no-roofline"])
        self.commands[-1] += [part for each in sets for part in ("--set", each)]
        return []

    def attempt(self, bench: str, size: str, measure: Callable[[], None], peer: str = "tenon") -> None:
        """Prints nothing."""
        measure()


def read_report(text: str) -> dict:
    """What `tenon bench --json` prints; an error is no JSON."""
    try:
        report = json.loads(text)
    except ValueError:
        report = {}
    return {"records": [], "problems": []} | report


def counts(record: dict) -> bool:
    """Whether a record is of the GPU: a chosen kernel there, or a step of which some node ran there."""
    if record["variant"]["plugin"] == "session":
        return any(":CUDA:" in node["device"] for node in (record.get("profile") or {}).get("nodes", []))
    return record["variant"]["device"] == "CUDA" and record["variant"]["chosen"]


def products(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """Squares times squares, a process for all sizes of a type."""
    for kind, dtype in PRODUCTS.items():
        sets = (f"{TF32}={str(kind == 'tf32').lower()}",) if dtype == "float" else ()
        for n in PRODUCT_SIZES:
            wish = ["--device", "CUDA", "--dtype", dtype, "--shape", f"a={n}x{n},b={n}x{n}", "--time", seconds]

            def measure() -> None:
                for record in tenon.bench("MatMul", *wish, "--no-dispatch", sets=sets):
                    tenon.row(f"product_{kind}", str(n), record, product_work(n), "GFLOP/s")

            tenon.attempt(f"product_{kind}", str(n), measure)


def memory(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """What moves memory."""
    for size, total in MEMORY_SIZES.items():
        for op in MEMORY:
            wish = ["--device", "CUDA", "--dtype", "float", "--shape", op.shape(total // 4), "--time", seconds]

            def measure() -> None:
                for record in tenon.bench(op.op, *wish, *op.options, "--no-dispatch"):
                    tenon.row(f"memory_{op.name}", size, record, float(op.tensors * total), "GB/s")

            tenon.attempt(f"memory_{op.name}", size, measure)


def nodes(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """A chain of kernels of one element, eager and from a captured graph: the whole step."""
    for bench, capture in (("nodes_eager", NEVER), ("nodes_captured", ALWAYS)):
        tenon.attempt(bench, str(NODES), lambda: step(
            tenon, bench, str(NODES), graphs / "chain.pb", ["--time", seconds], NODES, "Gop/s", sets=(*CHAIN, capture)
        ))


def copies(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """A step that is fed 256 MiB and sums them up, alone and beside a product. The sum is part of the time."""
    for bench in ("copy_to_device", "copy_overlapped"):
        tenon.attempt(bench, "256MiB", lambda: step(
            tenon, bench, "256MiB", graphs / f"{bench}.pb", ["--time", seconds], float(COPY_BYTES), "GB/s"
        ))


def models(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """Whole steps, fed from and fetched to host memory; as the plugin likes, and as captured graphs. The first step is not
    captured: algorithms are found out in it."""
    for name, kind, batch in ((name, kind, batch) for name in MODELS for kind in MODEL_DTYPES for batch in BATCHES):
        data = ["--data", str(graphs / f"{name}_{kind}_b{batch}.npz"), "--time", seconds]
        for peer, sets in (("tenon", (SEARCH,)), ("tenon_captured", (SEARCH, ONCE_SEEN))):
            bench, size = f"model_{name}_{kind}", f"b{batch}"
            tenon.attempt(bench, size, lambda: step(
                tenon, bench, size, graphs / f"{name}_{kind}.pb", data, batch, "Gimage/s", peer=peer, sets=sets
            ), peer)


def step(tenon: Tenon, bench: str, size: str, graph: Path, wish: list[str], work: float, unit: str, peer: str = "tenon",
         sets: tuple[str, ...] = ()) -> None:
    """One whole step of a graph."""
    for record in tenon.bench(str(graph), *wish, sets=sets):
        tenon.row(bench, size, record, work, unit, peer)


SECTIONS = {"products": products, "memory": memory, "nodes": nodes, "copies": copies, "models": models}


def unknown_options(commands: list[list[str]], help_text: str) -> Iterator[str]:
    """Options of the commands that the program's help does not name."""
    used = {word for command in commands for word in command if word.startswith("--")}
    named = set(help_text.split())
    yield from sorted(used - named)


def missing_graphs(commands: list[list[str]]) -> Iterator[str]:
    """Files that the commands read and that are not there."""
    files = {word for command in commands for word in command if word.endswith((".pb", ".npz"))}
    yield from sorted(file for file in files if not Path(file).exists())


def dry(tenon: Dry) -> int:
    """Says what would be run and whether it could; exit status."""
    done = subprocess.run([str(tenon.program), "bench", "--help"], capture_output=True, text=True, check=True)
    wrong = [f"tenon bench has no option {option}" for option in unknown_options(tenon.commands, done.stdout)]
    for each in wrong:
        print(f"bench_tenon: {each}", file=sys.stderr)
    graphs = len(list(missing_graphs(tenon.commands)))
    print(f"bench_tenon: {len(tenon.commands)} commands; {graphs} files that make_graphs.py has yet to write")
    return 1 if wrong else 0


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=Path, metavar="TENON")
    parser.add_argument("graphs", type=Path, metavar="GRAPHS")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--seconds", default="0.3")
    parser.add_argument("--limit", type=float, default=40.0)
    parser.add_argument("--gpu", default="unknown", help="the device's name, for the lines")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    wanted = options.sections.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no section {sorted(unknown)[0]}: there are {', '.join(SECTIONS)}")
    tenon = (Dry if options.dry else Tenon)(options.tenon, options.limit, options.gpu)
    for name in wanted:
        SECTIONS[name](tenon, options.seconds, options.graphs)
    if options.dry:
        return dry(tenon)
    return 1 if tenon.failures else 0


if __name__ == "__main__":
    sys.exit(main())
