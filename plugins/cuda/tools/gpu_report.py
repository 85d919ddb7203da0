#!/usr/bin/env python3
"""Prints what was measured, each row beside its target, from a record of `.ci/gpu run`.

Usage: gpu_report.py RECORD

RECORD has the machine's line, then the lines of both sides. Exits 0 when every row that has a target was measured and
reaches it, 1 when one does not, 2 when nothing was measured.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_rows import BATCHES, COPY_SIZE, MEMORY, MEMORY_SIZES, MODEL_DTYPES, MODELS, NODES, PRODUCT_SIZES, PRODUCTS, Target, target_of

Lines = dict[tuple[str, str, str], dict]
# Ours where libraries may time their algorithms, as PyTorch does for models (cudnn.benchmark).
SEARCHED = "tenon_searched"


def expected() -> list[tuple[str, str]]:
    """Every row that has a target."""
    rows = [(f"product_{kind}", str(n)) for kind in PRODUCTS for n in PRODUCT_SIZES]
    rows += [(f"memory_{op.name}", size) for size in MEMORY_SIZES for op in MEMORY]
    rows += [("nodes_eager", str(NODES)), ("nodes_captured", str(NODES))]
    rows += [("copy_to_device", COPY_SIZE), ("copy_overlapped", COPY_SIZE)]
    return rows + [(f"model_{name}_{kind}", f"b{batch}") for name in MODELS for kind in MODEL_DTYPES for batch in BATCHES]


def read(files: Iterable[Path]) -> list[dict]:
    """The lines of all files; a side that was cut off leaves half a line, which is left out."""
    lines = []
    for file in files:
        for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            try:
                lines.append(json.loads(text))
            except ValueError:
                continue
    return lines


@dataclass
class Verdict:
    """A row of the table. `reached` is None where it was not measured, for the reason in `why`."""

    bench: str
    size: str
    ours: str
    peer: str
    figure: str
    target: str
    reached: bool | None
    why: str = ""

    def __str__(self) -> str:
        said = {True: "reached", False: "MISSED", None: "NOT MEASURED"}[self.reached]
        what = f"{self.bench:<20} {self.size:>7}"
        row = f"{what}  {self.ours:>26}  {self.peer:>26}  {self.figure:>18}  {self.target:>13}  {said}"
        return row + (f"\n    {self.why}" if self.why else "")


def judge(bench: str, size: str, lines: Lines) -> Verdict:
    """One row."""
    target = target_of(bench)
    ours = best(lines, bench, size, ("tenon", SEARCHED) if bench.startswith("model_") else ("tenon",))
    peer = best(lines, (target.peer_bench if target else "") or bench, size, ("torch",))
    told = words(target)
    if target is None or ours is None or (peer is None and target.kind != "cost"):
        missing = ("tenon", bench) if ours is None else ("torch", (target.peer_bench if target else "") or bench)
        why = lines.get((missing[1], size, missing[0]), {}).get("failed", "there is no line of it")
        return Verdict(bench, size, time(ours), time(peer), "-", told, None, f"{missing[0]}: {why}")
    why = ours["checked"] if ours.get("checked", "").startswith("not compared") else ""
    if ours["peer"] == SEARCHED:
        why = "; ".join(part for part in (why, "with algorithms searched for") if part)
    if target.kind == "cost":
        cost = ours["median_ns"] / 1000 / NODES
        of_peer = f"{peer['median_ns'] / 1000 / NODES:.2f} us/node" if peer else "-"
        return Verdict(bench, size, f"{cost:.2f} us/node", of_peer, f"{cost:.2f}", told, cost <= target.limit, why)
    if target.kind == "ratio":
        ratio = ours["median_ns"] / peer["median_ns"]
        graph = lines.get((bench, size, "torch_graph"), {})
        beside = f" ({ours['median_ns'] / graph['median_ns']:.3f} graph)" if "median_ns" in graph else ""
        return Verdict(bench, size, time(ours), time(peer), f"{ratio:.3f}{beside}", told, ratio <= target.limit, why)
    share = ours["rate"] / peer["rate"]
    return Verdict(bench, size, time(ours), time(peer), f"{share:.3f}", told, share >= target.limit, why)


def best(lines: Lines, bench: str, size: str, peers: tuple[str, ...]) -> dict | None:
    """The fastest of some peers that were measured."""
    found = [lines.get((bench, size, peer), {}) for peer in peers]
    return min((line for line in found if "median_ns" in line), key=lambda line: line["median_ns"], default=None)


def time(line: dict | None) -> str:
    """Time and rate."""
    if line is None:
        return "-"
    unit = {"Gimage/s": ("image/s", 1e9), "Gop/s": ("Mop/s", 1e3), "GFLOP/s": ("TFLOP/s", 1e-3)}
    name, factor = unit.get(line["unit"], (line["unit"], 1))
    return f"{line['median_ns'] / 1e6:.4g} ms {line['rate'] * factor:.4g} {name}"


def words(target: Target | None) -> str:
    """A target in words."""
    if target is None:
        return "-"
    if target.kind == "ratio":
        return f"time <= {target.limit}"
    if target.kind == "cost":
        return f"<= {target.limit} us/node"
    return f"rate >= {target.limit}"


def table(lines: list[dict]) -> list[Verdict]:
    """All rows that have a target."""
    by_key = {(line.get("bench"), line.get("size"), line.get("peer")): line for line in lines}
    return [judge(bench, size, by_key) for bench, size in expected()]


def facts(head: dict) -> str:
    """The machine, a fact a line."""
    return "\n".join(f"{name:<18} {value}" for name, value in head.items())


def beside(lines: list[dict]) -> list[str]:
    """What stands beside the table: Tenon's libraries, the GPU's state, and what failed without having a row."""
    said = [f"Tenon's libraries: nvrtc {line['nvrtc']}; cublasLt {line['cublasLt']}; cudnn {line['cudnn']}"
            for line in lines if line.get("bench") == "libraries" and "nvrtc" in line]
    for line in lines:
        if line.get("bench") == "state":
            told = {name: value for name, value in line.items() if name not in ("bench", "peer", "size")}
            said.append(f"state {line['size']}: " + ", ".join(f"{name} {value}" for name, value in told.items()))
            if line["size"] == "before" and (figure(line, "memory_used") > 2048 or figure(line, "busy") > 10):
                said.append("the GPU was not idle before: something else used it, and figures are not to be trusted")
    rows = set(expected())
    for line in lines:
        in_table = line.get("peer") in ("tenon", "torch") and (line.get("bench"), line.get("size")) in rows
        if "failed" in line and not in_table:
            said.append(f"failed: {line.get('peer')} {line.get('bench')} {line.get('size')}: {line['failed']}")
    return said


def figure(line: dict, name: str) -> float:
    """The number that begins a text, such as `4 MiB`; 0 where there is none."""
    first = str(line.get(name, "")).split(" ")[0]
    return float(first) if first.replace(".", "", 1).isdigit() else 0.0


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, metavar="RECORD")
    lines = read([parser.parse_args().record])
    head = next((line for line in lines if "bench" not in line), {})
    print(facts(head))
    if "rehearsal" in head:
        print("a rehearsal: nothing of this says anything about a GPU")
    for each in beside(lines):
        print(each)
    if not any("median_ns" in line for line in lines):
        print("gpu_report: nothing was measured")
        return 2
    verdicts = table(lines)
    print(f"\n{'row':<20} {'size':>7}  {'Tenon':>26}  {'PyTorch':>26}  {'figure':>18}  {'target':>13}")
    for verdict in verdicts:
        print(verdict)
    missed = sum(verdict.reached is False for verdict in verdicts)
    unknown = sum(verdict.reached is None for verdict in verdicts)
    reached = len(verdicts) - missed - unknown
    print(f"gpu_report: {len(verdicts)} rows with a target: {reached} reached, {missed} missed, {unknown} not measured")
    return 1 if missed or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
