#!/usr/bin/env python3
"""What `tenon check --json` found of a plugin, op by op: right, right but for exceptions, or wrong.

    check_summary.py REPORT.json EXCEPTIONS.toml

An op is wrong where one of its kernels broke a clause, and has no verdict where it was not looked at or a step did not
come back in time. Exceptions are told with their reasons and how many findings they cover. The exit status is 0 where
the report says that all is right.
"""

import json
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field

EXPECTED = "expected failure: "


@dataclass
class Op:
    """All kernels of an op, or a device."""

    kernels: int = 0
    cases: int = 0
    left: int = 0
    wrong: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    excepted: Counter = field(default_factory=Counter)

    def verdict(self) -> str:
        """In a word."""
        if self.wrong:
            return "wrong"
        if self.late or self.left:
            return "no verdict"
        return "excepted" if self.excepted else "right"


def reasons(exceptions: dict) -> set[str]:
    """The reasons of a file of exceptions."""
    entries = exceptions.get("unsupported", []) + exceptions.get("expected_failure", [])
    return {entry["reason"] for entry in entries}


def ops_of(report: dict, known: set[str]) -> dict[str, Op]:
    """The ops of a report by name, in its order."""
    ops: dict[str, Op] = {}
    for subject in report["subjects"]:
        op = ops.setdefault(subject["op"] or subject["name"], Op())
        op.kernels += 1
        op.cases += subject["cases"]
        op.left += not subject["clauses"]
        for clause, tally in subject["clauses"].items():
            for failure in tally["failures"][:1]:
                is_late = clause == "progress" and "did not return" in failure["message"]
                where = f" in {failure['case']}" if failure["case"] else ""
                text = f"{subject['name']}, {clause}{where}: {failure['message']}"
                (op.late if is_late else op.wrong).append(text)
            for reason, count in tally["skipped"].items():
                plain = reason.removeprefix(EXPECTED)
                if plain in known:
                    op.excepted[plain] += count
    return ops


def lines(ops: dict[str, Op]) -> list[str]:
    """The table, and below each op what there is to say of it."""
    width = max(map(len, ops), default=2)
    table = [f"{'OP':<{width}} KERNELS CASES VERDICT"]
    for name, op in ops.items():
        table.append(f"{name:<{width}} {op.kernels:>7} {op.cases:>5} {op.verdict()}")
        table += [f"    {text}" for text in op.wrong + op.late]
        if op.left:
            table.append(f"    {op.left} of {op.kernels} kernels were not looked at")
        table += [f"    excepted, {count} findings: {reason}" for reason, count in op.excepted.items()]
    return table


def total(ops: dict[str, Op], report: dict) -> str:
    """The last line."""
    verdicts = Counter(op.verdict() for op in ops.values())
    parts = [f"{verdicts[name]} {name}" for name in ("right", "excepted", "wrong", "no verdict") if verdicts[name]]
    kernels, cases = sum(op.kernels for op in ops.values()), report["cases"]
    return f"{len(ops)} ops and devices, {kernels} kernels, {cases} cases in {report['seconds']:.0f} s: {', '.join(parts)}"


def main(arguments: list[str]) -> int:
    """Prints the summary of a report."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        report = json.load(file)
    with open(arguments[1], "rb") as file:
        known = reasons(tomllib.load(file))
    ops = ops_of(report, known)
    print("\n".join(lines(ops)))
    for problem in report["problems"]:
        print(f"problem: {problem}")
    for note in report["notes"]:
        print(f"note: {note}")
    print(total(ops, report))
    return 0 if report["right"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
