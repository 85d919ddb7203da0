"""Checks that every index and archive of golden data agree. Needs NumPy only.

Usage: python verify.py    prints what it read; ends with status 1 and a list if anything is wrong.
"""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent

NUMPY = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "V2",
    "bool": "bool",
    "qint8": "int8",
    "quint8": "uint8",
    "qint16": "int16",
    "quint16": "uint16",
    "qint32": "int32",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128")},
}
PLAIN_KINDS = {"type", "int", "float", "bool", "string", "shape", "tensor"}
ATTR_KINDS = PLAIN_KINDS | {f"list({kind})" for kind in PLAIN_KINDS}
CODES = {"INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED"}
CASE_KEYS = {"name", "attrs", "inputs", "outputs", "const_inputs", "tolerance", "reason", "via", "error"}
# Attributes of ops without outputs: of Assert.
SILENT = {"summarize"}
OUTPUT_KEYS = {"dtype", "shape", "compare", "tolerance"}


class Check:
    """Errors found in one archive, and which of its arrays were named."""

    def __init__(self, label, archive):
        self.label, self.archive = label, archive
        self.unused, self.errors = set(archive.files), []

    def require(self, condition, message):
        if not condition:
            self.errors.append(f"{self.label}: {message}")

    def tensor(self, key, described):
        """The array exists with the dtype and shape described."""
        if key not in self.archive.files:
            return self.require(False, f"{key} is missing")
        self.unused.discard(key)
        array = self.archive[key]
        dtype = described["dtype"]
        self.require(
            list(array.shape) == described["shape"], f"{key} has shape {array.shape}, not {described['shape']}"
        )
        if dtype == "string":
            self.require(array.dtype.kind == "S", f"{key} is {array.dtype}, not a string")
        else:
            self.require(array.dtype == np.dtype(NUMPY[dtype]), f"{key} is {array.dtype}, not {dtype}")

    def tolerance(self, where, tolerance):
        good = (
            tolerance == "exact"
            or isinstance(tolerance, dict)
            and (set(tolerance) in ({"ulp"}, {"abs_terms"}, {"absolute", "relative"}) and all(v >= 0 for v in tolerance.values()))
        )
        self.require(good, f"{where} has tolerance {tolerance}")


def check_case(check, case):
    """One line of an op's index."""
    name = case["name"]
    check.require(set(case) <= CASE_KEYS, f"{name} has other keys than {sorted(CASE_KEYS)}")
    for attr, value in case["attrs"].items():
        check.require(len(value) == 1 and set(value) <= ATTR_KINDS, f"{name}.{attr} is {value}")
        if "tensor" in value:
            check.require(value["tensor"] in check.archive.files, f"{name}.{attr} is missing")
            check.unused.discard(value["tensor"])
    for i, described in enumerate(case["inputs"]):
        check.tensor(f"{name}.in{i}", described)
    check.require(all(i < len(case["inputs"]) for i in case["const_inputs"]), f"{name} has const_inputs out of range")
    if "error" in case:
        check.require(case["error"] in CODES and not case["outputs"], f"{name} has error {case['error']}")
        return
    check.require(case["outputs"] or case["attrs"].keys() & SILENT, f"{name} has no outputs")
    check.tolerance(name, case["tolerance"])
    for i, described in enumerate(case["outputs"]):
        check_output(check, case, i, described)


def check_output(check, case, i, described):
    """One output: its values, and for sums the absolute terms."""
    name = case["name"]
    check.require(set(described) <= OUTPUT_KEYS, f"{name}.out{i} has other keys than {sorted(OUTPUT_KEYS)}")
    if described.get("compare") == "shape":
        return
    check.tensor(f"{name}.out{i}", described)
    tolerance = described.get("tolerance", case["tolerance"])
    check.tolerance(f"{name}.out{i}", tolerance)
    if "abs_terms" not in tolerance:
        return
    key = f"{name}.abs{i}"
    parts = [2] if described["dtype"].startswith("complex") else []
    check.tensor(key, {"dtype": "double", "shape": described["shape"] + parts})
    if key in check.archive.files:
        terms = check.archive[key]
        # NaN stands where there was nothing to divide by, as in the mean of no elements.
        check.require(not np.any(terms < 0) and not np.any(np.isinf(terms)), f"{key} is negative or infinite")


def check_op(path):
    """An op's index against its archive."""
    index = json.loads(path.read_text())
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as archive:
        check = Check(f"{path.parent.name}/{path.stem}", archive)
        check.require(index["op"] == path.stem, f"is about {index['op']}")
        names = [case["name"] for case in index["cases"]]
        check.require(len(names) == len(set(names)), "names a case twice")
        check.require(all(n.isascii() and "/" not in n and "." not in n for n in names), "has odd case names")
        for case in index["cases"]:
            check_case(check, case)
        check.require(not check.unused, f"has arrays that no case names: {sorted(check.unused)[:5]}")
    return len(names), check.errors


GRAPHS = ("frozen", "graphs")
# Folders of another form; the indexes of the first have many graphs each, which is checked here.
OTHERS = ("sequences", "quantize", "gradients", "gradient_graphs", "checkpoints", "training", "events")


def check_graphs(path):
    """An index of graphs against their archives."""
    index, errors = json.loads(path.read_text()), []
    for graph in index["graphs"]:
        with np.load(path.parent / graph["arrays"], allow_pickle=False) as archive:
            check = Check(f"{path.parent.name}/{graph['name']}", archive)
            check.require((path.parent / graph["file"]).stat().st_size > 0, "is empty")
            for run in graph["runs"]:
                described = run["feeds"] + ([] if "error" in run else run["fetches"])
                for tensor in described:
                    check.tensor(tensor["array"], tensor)
                check.require("error" not in run or run["error"] in CODES, f"has error {run.get('error')}")
            check.require(not check.unused, f"has arrays that no run names: {sorted(check.unused)[:5]}")
        errors += check.errors
    return len(index["graphs"]), errors


def check_sequences(path):
    """An index of sequences against their archive."""
    index = json.loads(path.read_text())
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as archive:
        check = Check(f"{path.parent.name}/{path.stem}", archive)
        for graph in index["graphs"]:
            check.unused.discard(graph["prefix"] + "graph")
            check.require(graph["prefix"] + "graph" in archive.files, f"{graph['name']} has no graph")
            for run in graph["runs"]:
                for tensor in run["feeds"] + ([] if "error" in run else run["fetches"]):
                    check.tensor(graph["prefix"] + tensor["array"], tensor)
        check.require(not check.unused, f"has arrays that no step names: {sorted(check.unused)[:5]}")
    return len(index["graphs"]), check.errors


def check_gradients(path):
    """The index of gradients against its archive, and against the indexes of the ops' cases."""
    index = json.loads(path.read_text())
    cases = {}
    with np.load(path.with_name("gradients.npz"), allow_pickle=False) as archive:
        check = Check("gradients", archive)
        for line in index["gradients"]:
            op = line["op"]
            if line.keys() & {"none", "absent"}:
                continue
            if op not in cases:
                golden = json.loads((FOLDER / line["family"] / f"{op}.json").read_text())
                cases[op] = {case["name"]: case for case in golden["cases"]}
            case = cases[op].get(line["case"])
            check.require(case is not None, f"{op} has no case {line['case']}")
            prefix = f"{op}.{line['case']}." + "".join(map(str, line["outputs"]))
            kinds = [("d", [i for i in line["inputs"] if i not in line["zeros"]]), ("dd", line.get("second", []))]
            for kind, inputs in kinds:
                for i in inputs if case else []:
                    check.tensor(f"{prefix}.{kind}{i}", case["inputs"][i])
        check.require(not check.unused, f"has arrays that no line names: {sorted(check.unused)[:5]}")
    return len(index["gradients"]), check.errors


def main():
    total, errors = 0, []
    paths = sorted(p for p in FOLDER.glob("*/*.json") if p.parent.name not in GRAPHS + OTHERS)
    for path in paths:
        count, found = check_op(path)
        total += count
        errors += found
    graphs = 0
    for name in GRAPHS:
        count, found = check_graphs(FOLDER / name / "index.json")
        graphs += count
        errors += found
    for path in sorted((FOLDER / "sequences").glob("*.json")):
        count, found = check_sequences(path)
        graphs += count
        errors += found
    gradients, found = check_gradients(FOLDER / "gradients" / "index.json")
    errors += found
    size = sum(p.stat().st_size for p in FOLDER.glob("*/*.npz"))
    index = sum(p.stat().st_size for p in FOLDER.glob("*/*.json"))
    print(
        f"{len(paths)} ops, {total} cases, {graphs} graphs, {gradients} gradients; {size / 2**20:.1f} MiB of arrays, {index / 2**20:.1f} MiB of index"
    )
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
