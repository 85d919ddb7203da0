#!/usr/bin/env python3
"""Proves the kernels of plugins/cuda without a GPU: each compiles for each architecture, none spills, and each holds the
instructions that expectations.toml names.

Usage: check_kernels.py WORK [--compiled DIR] [--arch 80]... [--match TEXT] [--write] [--record FILE] [--expectations FILE]
                        [--sources DIR] [--quiet]
       check_kernels.py WORK --nvrtc

WORK keeps from run to run the tools (a virtual environment of 350 MB), what was compiled, and what the tools said of it.
The kernels are compiled by the plugin's own code, its example `compile`; with --compiled they have been, into DIR.
--write lays registers.tsv down anew. --nvrtc fetches the tools and prints the folder of libnvrtc: what the example wants
in TENON_CUDA_LIBRARY_PATH.

What is printed: a table of registers, what differs from registers.tsv, what is wrong. Exits 0 when nothing is, 1 when
something is, 2 when a tool, the record or the expectations cannot be used.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import expectations
import register_record
import toolchain
from expectations import ExpectationError, Expectations
from listing import Function, ListingError, Variant, assembled, disassembled, joined
from notes import Notes
from register_record import RecordError
from toolchain import Toolchain, ToolError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCES = HERE.parent / "src/kernels/cu"


class CompiledError(Exception):
    """What the example wrote is not what it says there."""


def main() -> int:
    """Exit status."""
    options = arguments()
    try:
        options.work.mkdir(parents=True, exist_ok=True)
        if options.nvrtc:
            print(toolchain.prepare(options.work).nvrtc)
            return 0
        return check(options)
    except (CompiledError, ExpectationError, ListingError, RecordError, ToolError, OSError) as error:
        print(f"check_kernels: {error}", file=sys.stderr)
        return 2


def check(options: argparse.Namespace) -> int:
    """Judges every kernel; exit status."""
    expected = expectations.load(options.expectations)
    archs = options.arch or expected.archs
    if unknown := set(archs) - set(expected.archs):
        raise ExpectationError(f"sm_{sorted(unknown)[0]} is not among the architectures {expected.archs}")
    tools = toolchain.prepare(options.work)
    folder = options.compiled or compile_all(tools, archs, options)
    functions, wrong = examine(tools, Notes(options.work / "examined"), folder, archs, options.match)
    if not functions:
        raise CompiledError(f"{folder / 'variants.json'} names no kernel, or none with '{options.match}'")
    wrong += expected.judge(functions)
    if not options.match:
        wrong += expected.stale(archs)
        wrong += never_compiled(options.sources, functions)
    wrong += against_record(options, expected, functions, archs)
    if not options.quiet:
        print_table(functions, archs)
    for each in wrong:
        print(f"wrong: {each}")
    entries = sum(function.usage.registers is not None for function in functions)
    said = f"{len(wrong)} wrong" if wrong else "all as expected"
    print(f"check_kernels: {entries} entries for {', '.join(f'sm_{arch}' for arch in archs)}: {said}")
    return 1 if wrong else 0


def compile_all(tools: Toolchain, archs: list[int], options: argparse.Namespace) -> Path:
    """Runs the example that compiles every variant by the plugin's code; the folder of what it made."""
    folder = options.work / "compiled"
    command = ["cargo", "run", "--locked", "-p", "tenon-cuda", "--example", "compile", "--", "--out", str(folder)]
    command += ["--match", options.match]
    for arch in archs:
        command += ["--arch", str(arch)]
    told = os.environ | {"TENON_CUDA_LIBRARY_PATH": str(tools.nvrtc)}
    done = subprocess.run(command, cwd=ROOT, env=told, check=False)
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)} ended with {done.returncode}: a kernel does not compile, see above")
    return folder


def examine(
    tools: Toolchain, notes: Notes, folder: Path, archs: list[int], match: str
) -> tuple[list[Function], list[str]]:
    """The functions of every variant for these architectures, and the warnings of ptxas."""
    files = [job for job in files_of(folder, archs) if match in job[0].name]
    jobs = sorted(files, key=lambda job: (job[0].name, job[1]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: examine_one(tools, notes, *job), jobs))
    functions = [function for found, _ in results for function in found]
    return functions, [warning for _, warnings in results for warning in warnings]


def examine_one(
    tools: Toolchain, notes: Notes, variant: Variant, arch: int, ptx: Path, cubin: Path
) -> tuple[list[Function], list[str]]:
    """One variant for one architecture."""
    said = assembled(notes.remembered(ptx, lambda: tools.registers(ptx, arch)))
    if not said.functions:
        raise ListingError(f"{ptx}: ptxas names no function")
    code = disassembled(notes.remembered(cubin, lambda: tools.disassembly(cubin)))
    warnings = [f"{variant} (sm_{arch}): ptxas warns: {text}" for text in said.warnings]
    return list(joined(variant, arch, said.functions, code)), warnings


def files_of(folder: Path, archs: list[int]) -> Iterator[tuple[Variant, int, Path, Path]]:
    """What variants.json lists: variant, architecture, PTX and cubin."""
    path = folder / "variants.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        variants = [(Variant(each["name"], each["source"], dict(each["defines"])), each["files"]) for each in told]
        listed = [(variant, arch, files.get(str(arch))) for variant, files in variants for arch in archs]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        wanted = "a list of variants with `name`, `source`, `defines` and `files`"
        raise CompiledError(f"{path}: expected {wanted}: {error!r}") from error
    names = Counter(variant.name for variant, _ in variants)
    if twice := [name for name, times in names.items() if times > 1]:
        raise CompiledError(f"{path}: two variants are named {min(twice)}")
    for variant, arch, files in listed:
        if files is None or "ptx" not in files or "cubin" not in files:
            raise CompiledError(f"{path}: {variant} has no PTX and cubin for sm_{arch}")
        yield variant, arch, folder / files["ptx"], folder / files["cubin"]


def never_compiled(sources: Path, functions: list[Function]) -> Iterator[str]:
    """Sources of which no variant was compiled."""
    compiled = {function.variant.source for function in functions}
    for path in sorted(sources.rglob("*.cu")):
        if path.relative_to(sources).as_posix() not in compiled:
            yield f"{path.name}: no variant of this source is compiled: its family's `variants` has to list one"


def against_record(
    options: argparse.Namespace, expected: Expectations, functions: list[Function], archs: list[int]
) -> list[str]:
    """Compares with registers.tsv, or writes it; what is wrong."""
    now = register_record.rows(functions)
    if options.write:
        if set(archs) != set(expected.archs) or options.match:
            raise RecordError("the record is of all variants and architectures: leave out --arch and --match")
        register_record.write(options.record, now)
        return []
    was = register_record.read(options.record) if options.record.exists() else {}
    was = {key: row for key, row in was.items() if options.match in key[0]}
    differences = list(register_record.differences(was, now, archs))
    for each in differences:
        print(f"differs: {each}")
    if differences:
        print(f"{options.record.name} differs in {len(differences)} places: where that is meant, record it by --write")
    return list(register_record.grown(was, now, expected.limits.growth))


def print_table(functions: list[Function], archs: list[int]) -> None:
    """Registers of each entry at each architecture, and where there is any, the shared memory, stack and spills."""
    told = register_record.rows(functions)
    entries = list(dict.fromkeys((variant, entry) for variant, entry, _ in told))
    widths = [max((len(names[i]) for names in entries), default=0) for i in (0, 1)]
    heads = "".join(f"{f'sm_{arch}':>8}" for arch in archs)
    print(f"{'variant':<{widths[0]}}  {'entry':<{widths[1]}}{heads}  shared  stack  spills")
    for variant, entry in entries:
        found = [told.get((variant, entry, arch)) for arch in archs]
        registers = "".join(f"{row[0] if row else '-':>8}" for row in found)
        most = [max((row[i] for row in found if row), default=0) for i in (1, 2, 3)]
        more = f"  {most[0]:>6}  {most[1]:>5}  {most[2]:>6}"
        print(f"{variant:<{widths[0]}}  {entry:<{widths[1]}}{registers}{more}")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK")
    parser.add_argument("--compiled", type=Path, metavar="DIR", help="what the example wrote")
    parser.add_argument("--arch", type=int, action="append", help="this architecture only; may be repeated")
    parser.add_argument("--match", default="", metavar="TEXT", help="only variants with this in their names")
    parser.add_argument("--write", action="store_true", help="write the record instead of comparing with it")
    parser.add_argument("--record", type=Path, default=HERE / "registers.tsv")
    parser.add_argument("--expectations", type=Path, default=HERE / "expectations.toml")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="each of its .cu files must be compiled")
    parser.add_argument("--quiet", action="store_true", help="no table")
    parser.add_argument("--nvrtc", action="store_true", help="fetch the tools and print where libnvrtc is")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
