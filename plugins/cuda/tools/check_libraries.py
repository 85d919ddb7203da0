#!/usr/bin/env python3
"""Compares what plugins/cuda believes of cuBLASLt and cuDNN with NVIDIA's headers and libraries, for CUDA 12 and 13.

Usage: check_libraries.py WORK PROGRAM [--cuda 12 --cuda 13]

PROGRAM is the example `libraries` of tenon-cuda, which prints the numbers, sizes, offsets, symbols and signatures that the
plugin has by itself. For each CUDA the packages of PACKAGES are fetched into WORK, unless they are there; a C++ program
made of the lines says what the headers have instead; `nm` says what the libraries export; and PROGRAM has the libraries make
and fill every description that kernels give them, which takes neither a GPU nor a driver. Exits 1 where anything differs.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from toolchain import ToolError, run

# The newest of each: what an older library lacks is no kernel there, since each symbol is looked for.
PACKAGES = {
    12: [
        "nvidia-cublas-cu12==12.9.3.13",
        "nvidia-cudnn-cu12==9.28.0.42",
        "nvidia-cuda-runtime-cu12==12.9.79",
        "nvidia-cuda-nvcc-cu12==12.9.86",
    ],
    13: [
        "nvidia-cublas==13.10.0.20",
        "nvidia-cudnn-cu13==9.28.1.4",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-crt==13.5.37",
    ],
}

# Types of 16 bits are declared by headers that want a compiler for GPUs; nothing here depends on what they are.
HEAD = """
#define __CUDA_FP16_H__
#define __CUDA_BF16_H__
struct __half { unsigned short x; };
struct __nv_bfloat16 { unsigned short x; };
#include <cublasLt.h>
#include <cudnn.h>
#include <cstddef>
#include <cstdio>
#include <string>
#include <type_traits>

template <class T> std::string class_of() {
    const char* kind = std::is_pointer<T>::value ? "p" : std::is_floating_point<T>::value ? "f" : "i";
    return std::is_pointer<T>::value ? kind : kind + std::to_string(sizeof(T));
}

template <class F> struct Signature;
template <class R, class... A> struct Signature<R (*)(A...)> {
    static std::string text() {
        std::string all = class_of<R>();
        const std::string each[] = {class_of<A>()..., ""};
        for (size_t at = 0; at < sizeof...(A); ++at) all += "," + each[at];
        return all;
    }
};

void say(int line, long long value) { std::printf("%d\\t%lld\\n", line, value); }
void say(int line, const std::string& text) { std::printf("%d\\t%s\\n", line, text.c_str()); }

int main() {
"""


@dataclass(frozen=True)
class Belief:
    """A line of the program: what it is about, the expression of C++ that gives the truth (none: only the symbol is
    looked for), what the plugin believes, and the library that must export a symbol, if any."""

    what: str
    expression: str
    believed: str
    library: str = ""
    symbol: str = ""


def belief(line: str) -> Belief:
    """One line, in fields separated by tabs."""
    match line.split("\t"):
        case ["value", _, name, value]:
            return Belief(name, f"static_cast<long long>({name})", value)
        case ["size", _, name, value]:
            return Belief(f"size of {name}", f"static_cast<long long>(sizeof({name}))", value)
        case ["offset", _, name, field, value]:
            return Belief(f"{name}.{field}", f"static_cast<long long>(offsetof({name}, {field}))", value)
        case ["function", _, library, name, classes]:
            return Belief(f"signature of {name}", f"Signature<decltype(&{name})>::text()", classes, library, name)
        case ["symbol", library, name]:
            return Belief(name, "", "", library, name)
    raise ToolError(f"a line that is not understood: {line!r}")


def source(beliefs: list[Belief]) -> str:
    """The C++ program that prints the truth by line."""
    says = (f"    say({at}, {each.expression});\n" for at, each in enumerate(beliefs) if each.expression)
    return HEAD + "".join(says) + "}\n"


def differences(beliefs: list[Belief], truth: dict[int, str], exported: dict[str, set[str]]) -> list[str]:
    """What is not as believed."""
    wrong = []
    for at, each in enumerate(beliefs):
        if each.expression and truth.get(at) != each.believed:
            wrong.append(f"{each.what}: the plugin has {each.believed}, the headers have {truth.get(at, 'nothing')}")
        if each.symbol and each.symbol not in exported[each.library]:
            wrong.append(f"lib{each.library}.so does not export {each.symbol}")
    return wrong


def fetch(work: Path, cuda: int) -> Path:
    """The folder with the packages for a CUDA."""
    folder, stamp = work / f"cuda-{cuda}", work / f"cuda-{cuda}.packages"
    wanted = "\n".join(PACKAGES[cuda])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"fetching {', '.join(PACKAGES[cuda])} into {folder}", file=sys.stderr)
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--upgrade"]
        run([sys.executable, "-m", "pip", "install", *options, "--target", str(folder), *PACKAGES[cuda]])
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def library(folder: Path, name: str) -> Path:
    """The file of a library."""
    found = sorted(folder.glob(f"nvidia/**/lib/lib{name}.so.*"))
    if len(found) != 1:
        raise ToolError(f"expected one lib{name}.so under {folder}, found {len(found)}: remove the folder and retry")
    return found[0]


def exports(file: Path) -> set[str]:
    """The names that a library exports, without their versions."""
    lines = run(["nm", "--dynamic", "--defined-only", str(file)]).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()}


def compiled(work: Path, folder: Path, text: str) -> dict[int, str]:
    """What the headers say, by line."""
    file, program = work / "truth.cpp", work / "truth"
    file.write_text(text, encoding="utf-8")
    includes = [f"-I{path}" for path in sorted(folder.glob("nvidia/**/include"))]
    run(["g++", "-std=c++17", "-Wno-deprecated-declarations", *includes, str(file), "-o", str(program)])
    pairs = (line.split("\t", 1) for line in run([str(program)]).stdout.splitlines())
    return {int(at): said for at, said in pairs}


def judge(work: Path, program: Path, cuda: int) -> list[str]:
    """What differs for a CUDA."""
    folder = fetch(work, cuda)
    files = {name: library(folder, name) for name in ("cublasLt", "cudnn")}
    folders = ":".join(str(file.parent) for file in files.values())
    said = run([str(program), folders]).stdout.splitlines()
    beliefs = [belief(line) for line in said if not line.startswith("described\t")]
    truth = compiled(work, folder, source(beliefs))
    wrong = differences(beliefs, truth, {name: exports(file) for name, file in files.items()})
    print(f"CUDA {cuda}: {len(beliefs)} beliefs, {len(wrong)} wrong; {', '.join(told(said))}")
    return [f"CUDA {cuda}: {each}" for each in wrong]


def told(said: list[str]) -> list[str]:
    """How much the libraries have described."""
    parts = (line.split("\t")[1:] for line in said if line.startswith("described\t"))
    return [f"{' '.join(part[:1])} took {part[1]} descriptions" for part in parts]


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK")
    parser.add_argument("program", type=Path, metavar="PROGRAM")
    parser.add_argument("--cuda", type=int, action="append", choices=sorted(PACKAGES))
    parser.add_argument("--fetch", action="store_true", help="only fetch the packages")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = options.cuda or sorted(PACKAGES)
    try:
        if options.fetch:
            for cuda in wanted:
                fetch(options.work, cuda)
            return 0
        wrong = [each for cuda in wanted for each in judge(options.work, options.program.resolve(), cuda)]
    except (ToolError, OSError, subprocess.SubprocessError) as error:
        print(f"check_libraries: {error}", file=sys.stderr)
        return 1
    for each in wrong:
        print(f"check_libraries: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
