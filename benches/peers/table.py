#!/usr/bin/env python3
"""Prints tables from JSON lines: Tenon, the best peer, their ratio; of models, their memory beside ONNX Runtime's.

Usage: table.py FILE.jsonl...

Of several lines of one side for one row, the one with the least median counts, on both sides alike.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

OURS = "tenon"
# What memory is put beside.
MEMORY_PEERS = ("ort", "ort_static")
# Benches that are one table: a peer may have a row in a form of its own, such as with weights packed once.
TABLES = {
    "products of floats": ("gemm_f32", "gemm_f32_packedB"),
    "products of bytes to 32 bits": ("gemm_u8s8s32", "gemm_u8u8s32", "gemm_u8s8s32_packedB"),
    "products of bytes to bytes": (
        "gemm_u8u8_requant_u8",
        "gemm_u8s8_requant_u8_packedB",
        "gemm_u8u8_requant_u8_packedB",
    ),
    "convolutions and pools": ("conv_f32", "conv"),
    "elementwise ops and reductions": ("elementwise",),
    "models in f32": ("model_f32",),
    "models in int8": ("model_int8",),
}


@dataclass
class Row:
    """The sides of one size: the best line of each."""

    size: str
    threads: int
    sides: dict[str, dict] = field(default_factory=dict)

    def add(self, line: dict) -> None:
        """Keeps the line if it is the side's best, and the least memory that any line of the side has."""
        known = self.sides.get(line["peer"], line)
        best = dict(min(known, line, key=lambda one: one["median_ns"]))
        peaks = [one["peak_rss_bytes"] for one in (known, line) if "peak_rss_bytes" in one]
        if peaks:
            best["peak_rss_bytes"] = min(peaks)
        self.sides[line["peer"]] = best

    def peers(self) -> list[dict]:
        """The others, fastest first."""
        others = [line for peer, line in self.sides.items() if peer != OURS]
        return sorted(others, key=lambda line: line["median_ns"])


def table_of(bench: str) -> str:
    """The table that a bench belongs to; its own where it is not listed."""
    return next((title for title, benches in TABLES.items() if bench in benches), bench)


def gather(lines: Iterable[str]) -> dict[str, list[Row]]:
    """Rows by table, in the order in which they come. What is no result is passed over: a record's first line, say."""
    tables: dict[str, dict[tuple, Row]] = {}
    for text in lines:
        line = json.loads(text) if text.startswith("{") else {}
        if "bench" not in line or "median_ns" not in line:
            continue
        rows = tables.setdefault(table_of(line["bench"]), {})
        row = rows.setdefault((line["threads"], line["size"]), Row(line["size"], line["threads"]))
        row.add(line)
    return {title: sorted(rows.values(), key=lambda row: row.threads) for title, rows in tables.items()}


def time(nanoseconds: float) -> str:
    """With a unit, three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def ratio(ours: float, theirs: float) -> str:
    """Below 1, ours is the lesser."""
    return f"{ours / theirs:.2f}"


def speed(row: Row) -> list[str]:
    """Cells of the times."""
    ours, peers = row.sides.get(OURS), row.peers()
    told = [time(ours["median_ns"]) if ours else "-"]
    told += [peers[0]["peer"], time(peers[0]["median_ns"])] if peers else ["-", "-"]
    told.append(ratio(ours["median_ns"], peers[0]["median_ns"]) if ours and peers else "-")
    told.append(f"{peers[1]['peer']} {time(peers[1]['median_ns'])}" if len(peers) > 1 else "-")
    return told


def memory(row: Row) -> list[str]:
    """Cells of the peaks."""
    peaks = {peer: line for peer, line in row.sides.items() if "peak_rss_bytes" in line}
    ours = peaks.get(OURS)
    theirs = next((peaks[peer] for peer in MEMORY_PEERS if peer in peaks), None)
    told = [mebibytes(line) if line else "-" for line in (ours, theirs)]
    return [*told, ratio(ours["peak_rss_bytes"], theirs["peak_rss_bytes"]) if ours and theirs else "-"]


def mebibytes(line: dict) -> str:
    """A peak, and what of it the interpreter and the library took before there was a model."""
    peak, imported = (f"{line.get(key, 0) / 2**20:.0f}" for key in ("peak_rss_bytes", "import_rss_bytes"))
    return f"{peak} MiB" + (f" ({imported})" if "import_rss_bytes" in line else "")


def render(title: str, rows: list[Row]) -> str:
    """A table in Markdown."""
    has_memory = any("peak_rss_bytes" in line for row in rows for line in row.sides.values())
    head = ["size", "threads", OURS, "best peer", "its time", "ratio", "next"]
    head += ["peak", "peak of ONNX Runtime (import)", "ratio"] if has_memory else []
    cells = [[row.size, str(row.threads), *speed(row), *(memory(row) if has_memory else [])] for row in rows]
    body = [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *cells)]
    return "\n".join([f"### {title}", "", *body, ""])


def main(files: list[str]) -> None:
    if not files:
        sys.exit(__doc__.strip())
    lines: list[str] = []
    for file in files:
        with open(file, encoding="utf-8") as text:
            lines += text
    for title, rows in gather(lines).items():
        print(render(title, rows))


if __name__ == "__main__":
    main(sys.argv[1:])
