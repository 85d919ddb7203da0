#!/usr/bin/env python3
"""Puts both sides' lines into one record, and prints each row beside its target.

Usage: gpu_report.py RECORD LINES... [--machine FILE]

RECORD gets the machine's line (a JSON object in FILE), then all lines. Exits 0 when every row that has a target was
measured and reaches it, 1 when one does not, 2 when there is no line at all.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_rows import BATCHES, MEMORY, MEMORY_SIZES, MODEL_DTYPES, MODELS, NODES, PRODUCT_SIZES, PRODUCTS, Target, target_of

Lines = dict[tuple[str, str, str], dict]


def expected() -> list[tuple[str, str]]:
    """Every row that has a target."""
    rows = [(f"product_{kind}", str(n)) for kind in PRODUCTS for n in PRODUCT_SIZES]
    rows += [(f"memory_{op.name}", size) for size in MEMORY_SIZES for op in MEMORY]
    rows += [("nodes_eager", str(NODES)), ("nodes_captured", str(NODES))]
    rows += [("copy_to_device", "256MiB"), ("copy_overlapped", "256MiB")]
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
    """A row of the table. `reached` is None where it was not measured."""

    bench: str
    size: str
    ours: str
    peer: str
    figure: str
    target: str
    reached: bool | None

    def __str__(self) -> str:
        said = {True: "reached", False: "MISSED", None: "NOT MEASURED"}[self.reached]
        what = f"{self.bench:<22} {self.size:>7}"
        return f"{what}  {self.ours:>22}  {self.peer:>24}  {self.figure:>12}  {self.target:>18}  {said}"


def judge(bench: str, size: str, lines: Lines) -> Verdict:
    """One row."""
    target = target_of(bench)
    ours = best(lines, bench, size, ("tenon", "tenon_captured"))
    if ours is None or target is None:
        why = next((line["failed"] for key, line in lines.items() if key[:2] == (bench, size) and "failed" in line), "")
        return Verdict(bench, size, "-", why[:24] or "-", "-", words(target), None)
    if target.kind == "cost":
        cost = ours["median_ns"] / 1000 / NODES
        peer = lines.get((bench, size, "torch"), {})
        peer_cost = f"{peer['median_ns'] / 1000 / NODES:.2f} us/node" if "median_ns" in peer else "-"
        return Verdict(bench, size, f"{cost:.2f} us/node", peer_cost, f"{cost:.2f}", words(target), cost <= target.limit)
    peer = best(lines, target.peer_bench or bench, size, ("torch",))
    if peer is None:
        return Verdict(bench, size, told(ours), "-", "-", words(target), None)
    if target.kind == "ratio":
        ratio = ours["median_ns"] / peer["median_ns"]
        graph = lines.get((bench, size, "torch_graph"), {})
        beside = f" ({ours['median_ns'] / graph['median_ns']:.2f} graph)" if "median_ns" in graph else ""
        return Verdict(bench, size, told(ours), told(peer), f"{ratio:.2f}{beside}", words(target), ratio <= target.limit)
    share = ours["rate"] / peer["rate"]
    return Verdict(bench, size, told(ours), told(peer), f"{share:.2f}", words(target), share >= target.limit)


def best(lines: Lines, bench: str, size: str, peers: tuple[str, ...]) -> dict | None:
    """The fastest of some peers that were measured."""
    found = [lines.get((bench, size, peer), {}) for peer in peers]
    return min((line for line in found if "median_ns" in line), key=lambda line: line["median_ns"], default=None)


def told(line: dict) -> str:
    """Time and rate."""
    ms = line["median_ns"] / 1e6
    return f"{ms:.3f} ms {line['rate']:.4g} {line['unit']}"


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


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, metavar="RECORD")
    parser.add_argument("lines", type=Path, nargs="+", metavar="LINES")
    parser.add_argument("--machine", type=Path)
    options = parser.parse_args()
    lines = read(options.lines)
    head = read([options.machine]) if options.machine else []
    options.record.write_text("".join(json.dumps(line) + "\n" for line in [*head, *lines]), encoding="utf-8")
    if not lines:
        print("gpu_report: nothing was measured", file=sys.stderr)
        return 2
    verdicts = table(lines)
    print("row                       size                    ours                   PyTorch        figure              target")
    for verdict in verdicts:
        print(verdict)
    missed = sum(verdict.reached is not True for verdict in verdicts)
    print(f"gpu_report: {len(verdicts)} rows with a target, {missed} missed or not measured; {options.record}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
