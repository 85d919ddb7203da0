#!/usr/bin/env python3
"""Measures Tenon on this machine's GPU by `tenon bench`: our lines of `.ci/gpu run`.

Usage: bench_tenon.py TENON GRAPHS --sections products,memory,nodes,copies,models [--seconds 0.3] [--limit 110] [--dry]

TENON is the program, beside its plugins; GRAPHS the folder that make_graphs.py filled. Each command may take --limit
seconds. `tenon bench` compares results before it times anything, ops with the reference kernels, models with PyTorch's
values: what is wrong is a failed row, and each row says with what it was compared. --dry runs no command, and says whether
the program knows each option and each knob. Exits 1 when a row could not be measured.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gpu_procs
from gpu_rows import BATCHES, COPY_BYTES, COPY_SIZE, MEMORY, MEMORY_SIZES, MODEL_DTYPES, MODELS, NODES, PRODUCT_SIZES, PRODUCTS
from gpu_rows import failed, line, product_work, show

# The knobs. One that the program does not have is a failed row, not another meaning.
TF32 = "cuda.allow_tf32"
CAPTURE = "runtime.record_after"
NEVER, ALWAYS = f"{CAPTURE}=-1", f"{CAPTURE}=0"
# Launches overlap by default; these rows also say what a step takes where they do not.
APART = "cuda.overlap_launches=false"
# A chain of ops is to stay one.
CHAIN = ("graph.elementwise_fusion=false", "graph.arithmetic=false")
# Knobs by which libraries time their algorithms, as PyTorch is let for models (cudnn.benchmark); measured beside there.
SEARCH = ("cuda.search_products", "cuda.search_convolutions")
# TF32 has 10 bits behind the point: a factor that is cut off there is wrong by 2^-10, a product of two by 2^-9.
TF32_TOLERANCE = "2e-3"


class Tenon:
    """The program."""

    def __init__(self, program: Path, limit: float, gpu: str):
        self.program, self.limit, self.more, self.failures = program, limit, {"gpu": gpu}, 0
        self.commands: list[list[str]] = []
        self.searches: list[str] | None = None

    def search(self) -> tuple[str, ...]:
        """Settings that let libraries time their algorithms; none where the plugin has no such knobs."""
        if self.searches is None:
            done = gpu_procs.run([str(self.program), "list", "--knobs"], self.limit)
            self.searches = [f"{knob}=true" for knob in SEARCH if knob in done.out.split()]
        return tuple(self.searches)

    def bench(self, target: str, *more: str, sets: tuple[str, ...] = ()) -> tuple[list[dict], str]:
        """The records of a run that are of the GPU, and what was wrong. Raises ValueError when there is no record."""
        command = [str(self.program), "bench", target, *more, "--json", "--no-roofline"]
        command += [part for each in sets for part in ("--set", each)]
        self.commands.append(command)
        done = gpu_procs.run(command, self.limit)
        if done.status is None:
            raise ValueError(f"no result within {self.limit:.0f} s: {' '.join(command[1:])}")
        report = read_report(done.out)
        records = [record for record in report["records"] if counts(record)]
        # Results that changed while they were timed: what was timed is nothing.
        if changed := [problem["message"] for problem in report["problems"] if problem["kind"] == "changed"]:
            raise ValueError("; ".join(changed))
        wrong = "; ".join(problem["message"] for problem in report["problems"] if problem["kind"] not in UNVERIFIED)
        if not records:
            raise ValueError(wrong or done.err.strip()[-400:] or "nothing was measured on the GPU")
        return records, wrong

    def row(self, bench: str, size: str, record: dict, work: float, unit: str, peer: str = "tenon") -> None:
        """Prints a record as a row."""
        ns = sorted(record["kernel"]["ns"])
        checked = record.get("checked") or "not compared: there is no reference for it"
        if part := record.get("sampled"):
            checked += f", {part['judged']} of {part['of']} {part['what']}"
        show(line(bench, peer, size, record["version"], ns, work, unit, **self.more, checked=checked))

    def attempt(self, bench: str, sizes: list[str], measure: Callable[[], dict[str, str] | None], peer: str = "tenon") -> None:
        """What cannot be measured is a line; `measure` may say so itself of single sizes."""
        try:
            missing = measure() or {}
        except (ValueError, OSError, KeyError, TypeError) as error:
            # Of a report of another form too.
            missing = dict.fromkeys(sizes, str(error) if type(error) is ValueError else repr(error))
        for size, why in missing.items():
            self.failures += 1
            show(failed(bench, peer, size, why, **self.more))


class Dry(Tenon):
    """Notes commands and runs none."""

    def search(self) -> tuple[str, ...]:
        """None: they are optional."""
        return ()

    def bench(self, target: str, *more: str, sets: tuple[str, ...] = ()) -> tuple[list[dict], str]:
        """No records."""
        self.commands.append([str(self.program), "bench", target, *more, "--json", "--no-roofline"])
        self.commands[-1] += [part for each in sets for part in ("--set", each)]
        return [], ""

    def attempt(self, bench: str, sizes: list[str], measure: Callable[[], dict[str, str] | None], peer: str = "tenon") -> None:
        """Prints nothing."""
        measure()


# Problems that do not take a record away: the row says that nothing was compared; a kernel that was refused is none.
UNVERIFIED = ("unverified", "refused")


def read_report(text: str) -> dict:
    """What `tenon bench --json` prints; an error is no JSON."""
    try:
        report = json.loads(text)
    except ValueError:
        report = {}
    return {"records": [], "problems": []} | report


def counts(record: dict) -> bool:
    """Whether a record is of the GPU: a kernel there, or a step of which some node ran there."""
    if record["variant"]["plugin"] == "session":
        return any(":CUDA:" in node["device"] for node in (record.get("profile") or {}).get("nodes", []))
    return record["variant"]["device"] == "CUDA"


def peer_of(record: dict) -> str:
    """Ours is what the runtime would choose; other kernels stand beside it under their labels."""
    variant = record["variant"]
    return "tenon" if variant["chosen"] else f"tenon_{variant['label'] or 'own'}"


def swept(tenon: Tenon, bench: str, sizes: dict[int, str], work: Callable[[int], float], unit: str, target: str,
          *more: str, sets: tuple[str, ...] = ()) -> dict[str, str]:
    """One op in all its sizes, in one process. `sizes` are names by the value of the symbol; what is missing comes back."""
    records, wrong = tenon.bench(target, *more, "--no-dispatch", sets=sets)
    left = {name: wrong or "it was not measured" for name in sizes.values()}
    for record in records:
        at = record["case"]["at"]
        peer = peer_of(record)
        tenon.row(bench, sizes[at], record, work(at), unit, peer)
        if peer == "tenon":
            left.pop(sizes[at], None)
    if wrong and not left:
        # Another kernel of the op, which would not have been chosen.
        tenon.failures += 1
        show(failed(bench, "tenon_other", "", wrong, **tenon.more))
    return left


def products(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """Squares times squares."""
    sizes = {n: str(n) for n in PRODUCT_SIZES}
    sweep = f"n={min(sizes)}..{max(sizes)}"
    for kind, dtype in PRODUCTS.items():
        wish = ["--device", "CUDA", "--dtype", dtype, "--shape", "a=[n,n],b=[n,n]", "--sweep", sweep, "--time", seconds]
        sets: tuple[str, ...] = (f"{TF32}={str(kind == 'tf32').lower()}",) if dtype == "float" else ()
        if kind == "tf32":
            wish += ["--tolerance", TF32_TOLERANCE]
        bench = f"product_{kind}"
        tenon.attempt(bench, [*sizes.values()], lambda: swept(
            tenon, bench, sizes, product_work, "GFLOP/s", "MatMul", *wish, sets=sets))


def memory(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """What moves memory."""
    for op in MEMORY:
        sizes = {op.rows(total): name for name, total in MEMORY_SIZES.items()}
        wish = ["--device", "CUDA", "--dtype", "float", "--shape", op.shapes, "--sweep", op.sweep(), "--time", seconds]
        tenon.attempt(f"memory_{op.name}", [*sizes.values()], lambda: swept(
            tenon, f"memory_{op.name}", sizes, lambda rows: 4.0 * rows * op.row * op.tensors, "GB/s", op.op,
            *wish, *op.options))


def nodes(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """A chain of kernels of one element, eager and from a captured graph: the whole step. Beside both, for the reader, with
    launches that do not overlap."""
    for bench, capture in (("nodes_eager", NEVER), ("nodes_captured", ALWAYS)):
        for peer, more in (("tenon", ()), ("tenon_apart", (APART,))):
            tenon.attempt(bench, [str(NODES)], lambda: step(
                tenon, bench, str(NODES), graphs / "chain.pb", ["--time", seconds], NODES, "Gop/s", peer=peer,
                sets=(*CHAIN, capture, *more)
            ), peer)


def copies(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """A step that is fed 256 MiB of pinned memory and sums them up, alone and beside a product. The sum is part of the
    time."""
    for bench in ("copy_to_device", "copy_overlapped"):
        tenon.attempt(bench, [COPY_SIZE], lambda: step(
            tenon, bench, COPY_SIZE, graphs / f"{bench}.pb", ["--time", seconds, "--pinned"], float(COPY_BYTES), "GB/s"
        ))


def models(tenon: Tenon, seconds: str, graphs: Path) -> None:
    """Whole steps, fed from pinned memory and fetched to host memory, as they come; and with algorithms searched for."""
    for name, kind, batch in ((name, kind, batch) for name in MODELS for kind in MODEL_DTYPES for batch in BATCHES):
        data = ["--data", str(graphs / f"{name}_{kind}_b{batch}.npz"), "--time", seconds, "--pinned"]
        for peer, sets in (("tenon", ()), ("tenon_searched", tenon.search())):
            if peer != "tenon" and not sets:
                continue
            bench, size = f"model_{name}_{kind}", f"b{batch}"
            tenon.attempt(bench, [size], lambda: step(
                tenon, bench, size, graphs / f"{name}_{kind}.pb", data, batch, "Gimage/s", peer=peer, sets=sets
            ), peer)


def step(tenon: Tenon, bench: str, size: str, graph: Path, wish: list[str], work: float, unit: str, peer: str = "tenon",
         sets: tuple[str, ...] = ()) -> None:
    """One whole step of a graph."""
    records, _ = tenon.bench(str(graph), *wish, sets=sets)
    for record in records:
        tenon.row(bench, size, record, work, unit, peer)


SECTIONS = {"products": products, "memory": memory, "nodes": nodes, "copies": copies, "models": models}


def unknown_options(commands: list[list[str]], help_text: str) -> Iterator[str]:
    """Options of the commands that the program's help does not name."""
    used = {word for command in commands for word in command if word.startswith("--")}
    named = set(help_text.split())
    yield from sorted(used - named)


def unknown_knobs(commands: list[list[str]], list_text: str) -> Iterator[str]:
    """Knobs that the commands set and the program does not have."""
    pairs = ((command[at], command[at + 1]) for command in commands for at in range(len(command) - 1))
    used = {value.split("=")[0] for option, value in pairs if option == "--set"}
    yield from sorted(used - set(list_text.split()))


def missing_graphs(commands: list[list[str]]) -> Iterator[str]:
    """Files that the commands read and that are not there."""
    files = {word for command in commands for word in command if word.endswith((".pb", ".npz"))}
    yield from sorted(file for file in files if not Path(file).exists())


def dry(tenon: Dry) -> int:
    """Says what would be run and whether it could; exit status."""
    program = str(tenon.program)
    told = subprocess.run([program, "bench", "--help"], capture_output=True, text=True, check=True).stdout
    knobs = subprocess.run([program, "list", "--knobs"], capture_output=True, text=True, check=True).stdout
    wrong = [f"tenon bench has no option {option}" for option in unknown_options(tenon.commands, told)]
    wrong += [f"there is no knob {knob}" for knob in unknown_knobs(tenon.commands, knobs)]
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
    parser.add_argument("--limit", type=float, default=110.0)
    parser.add_argument("--gpu", default="unknown", help="the device's name, for the lines")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    wanted = options.sections.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no section {sorted(unknown)[0]}: there are {', '.join(SECTIONS)}")
    gpu_procs.end_all_with_this_script()
    # Absolute: a name without a folder would be looked for in the search path.
    tenon = (Dry if options.dry else Tenon)(options.tenon.absolute(), options.limit, options.gpu)
    for name in wanted:
        SECTIONS[name](tenon, options.seconds, options.graphs)
    if options.dry:
        return dry(tenon)
    return 1 if tenon.failures else 0


if __name__ == "__main__":
    sys.exit(main())
