#!/usr/bin/env python3
"""Measures Tenon and the peers in one run, taking turns, and appends JSON lines to a file.

Usage: run.py WORK OUT.jsonl --tenon FOLDER [--only SECTION,...] [--threads 1,2] [--match TEXT] [--rounds 2]

Sections: limits, products, int8, rows, layers, models; all of them without --only. WORK is what setup.sh made; FOLDER
holds a release build of `tenon` beside its plugins. Errors, and what was left out, go to OUT.jsonl.err.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Where a side's own threads are put by c/pinshim.c while its caller is on the first core; None: it does so itself, or
# (TensorFlow) its caller waits while others work.
WORKERS = {"tenon": None, "tenon_int8": None, "tensorflow": None}
MODEL_SIDES = ["tenon", "ort", "tensorflow", "torch", "tenon_int8", "ort_int8"]
OP_SIDES = ["tenon", "ort", "tensorflow", "torch"]
ROW_SIDES = ["tenon", "numpy", "ort", "tensorflow", "torch"]
INT8_SIDES = ["ort", "torch"]
BLAS = {
    "openblas": ("f32", "scipy_openblas32/lib/libscipy_openblas.so", "scipy-openblas32", "scipy_cblas_sgemm"),
    "mkl": ("f32", "libmkl_rt.so.*", "mkl", "cblas_sgemm"),
    "onednn": ("f32", "libdnnl.so", "onednn", "dnnl_sgemm"),
    "mkl_u8s8": ("int8", "libmkl_rt.so.*", "mkl", "cblas_gemm_s8u8s32"),
    "onednn_u8s8": ("int8", "libdnnl.so", "onednn", "dnnl_gemm_u8s8s32"),
}


@dataclass(frozen=True)
class Job:
    """One process of a measurement."""

    command: list[str]
    threads: int
    # Core of the side's workers; None where they are left alone.
    workers: str | None = "1"
    # What it reads.
    fed: str = ""


class Plan:
    """The jobs of the sections, as the options have them."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.work = options, options.work
        self.python = str(self.work / "venv/bin/python")
        self.quantised = False

    def script(self, name: str, side: str, threads: int, *more: str) -> Job:
        """A script of this folder, measuring one side."""
        wish = ["--side", side, "--threads", str(threads), "--seconds", str(self.options.seconds)]
        command = [self.python, str(HERE / name), str(self.work), *wish, *more]
        return Job(command, threads, WORKERS.get(side, "1"))

    def sizes(self) -> str:
        """Products for the programs in C, a line each."""
        lines = (HERE / "gemm_sizes.txt").read_text().splitlines(keepends=True)
        return "".join(line for line in lines if self.options.match in "x".join(line.split()))

    def matching(self) -> list[str]:
        """So that a script leaves out other sizes."""
        return ["--match", self.options.match] if self.options.match else []

    def limits(self, threads: int) -> Iterator[Job]:
        """The machine's own; one process measures one and two threads."""
        if threads == 1:
            yield Job([str(self.work / "bin/limits")], 2, None)

    def ops(self, prefix: str, threads: int) -> Iterator[Job]:
        """Graphs of one op: whole steps of Tenon and of the frameworks."""
        for name in self.cases("ops", prefix):
            for side in OP_SIDES:
                yield self.script("models.py", side, threads, "--index", "ops", "--case", name)

    def blas(self, kind: str, threads: int) -> Iterator[Job]:
        """Libraries for products, through one C program."""
        for name, (of, pattern, package, symbol) in BLAS.items():
            if of == kind:
                library = self.library(pattern)
                peer = name.removesuffix("_u8s8")
                what = [symbol, peer, self.version(package), library, str(threads)]
                yield Job([str(self.work / "bin/gemm_blas"), *what], threads, "1", self.sizes())

    def products(self, threads: int) -> Iterator[Job]:
        """Matrix products of floats."""
        yield from self.blas("f32", threads)
        yield from self.ops("gemm_f32", threads)

    def int8(self, threads: int) -> Iterator[Job]:
        """Matrix products of bytes; ours are the benchmark `int8` of tenon-benches."""
        yield from self.blas("int8", threads)
        gemmlowp = self.work / "bin/gemm_lowp"
        if gemmlowp.exists():
            version = (self.work / "bin/gemm_lowp.version").read_text().strip()
            yield Job([str(gemmlowp), version, str(threads)], threads, "1", self.sizes())
        for side in INT8_SIDES:
            yield self.script("int8.py", side, threads, *self.matching())

    def rows(self, threads: int) -> Iterator[Job]:
        """Elementwise ops and reductions."""
        for side in ROW_SIDES:
            yield self.script("rows.py", side, threads, *self.matching())

    def layers(self, threads: int) -> Iterator[Job]:
        """Convolutions and pools."""
        yield from self.ops("conv_f32", threads)

    def models(self, threads: int) -> Iterator[Job]:
        """Whole models; the quantised ones of Tenon are made by the command that is measured."""
        if not self.quantised:
            self.quantise()
        for name in self.cases("models", ""):
            for side in self.options.sides or MODEL_SIDES:
                if self.has_form(name, side):
                    yield self.script("models.py", side, threads, "--case", name)

    def quantise(self) -> None:
        """Makes Tenon's int8 form of the models that ONNX Runtime has one of, calibrated with the same batch."""
        self.quantised = True
        sides = self.options.sides or MODEL_SIDES
        for file in self.work.glob("*_int8.onnx") if "tenon_int8" in sides else []:
            model = file.name.removesuffix("_int8.onnx")
            if not any(name.startswith(model) for name in self.cases("models", "")):
                continue
            made = self.work / f"{model}_int8.pb"
            made.unlink(missing_ok=True)
            data = ["--calibration", str(self.work / f"{model}_b8_feeds.npz"), "--out", str(made)]
            command = [str(self.options.tenon / "tenon"), "quantize", str(self.work / f"{model}.pb"), *data]
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
                print(f"{model} is not quantised: its int8 row has no line of ours", file=sys.stderr)

    def has_form(self, name: str, side: str) -> bool:
        """Whether a model has the int8 form that a side needs."""
        model = name.rsplit("_b", 1)[0]
        ending = {"ort_int8": "onnx", "tenon_int8": "pb"}.get(side)
        return ending is None or (self.work / f"{model}_int8.{ending}").exists()

    def cases(self, index: str, prefix: str) -> list[str]:
        """What prepare.py laid down for a section, as far as it is asked for."""
        file = self.work / f"{index}.json"
        if not file.exists():
            sys.exit(f"{file} is missing: run prepare.py {index} first (README.md)")
        cases = [json.loads(text) for text in file.read_text().splitlines()]
        found = [case["data"] for case in cases if case["bench"].startswith(prefix)]
        return [name for name in found if self.options.match in name]

    def library(self, pattern: str) -> str:
        """A library of the virtual environment."""
        folders = ("lib", "lib/python3*/site-packages")
        found = [path for folder in folders for path in self.work.glob(f"venv/{folder}/{pattern}")]
        if not found:
            sys.exit(f"no {pattern} in {self.work / 'venv'}: run setup.sh first")
        return str(found[0])

    def version(self, package: str) -> str:
        """Of a package of the virtual environment."""
        ask = f"import importlib.metadata as m; print(m.version('{package}'))"
        return subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


SECTIONS = {
    "limits": Plan.limits,
    "products": Plan.products,
    "int8": Plan.int8,
    "rows": Plan.rows,
    "layers": Plan.layers,
    "models": Plan.models,
}


def environment(job: Job, options: argparse.Namespace) -> dict[str, str]:
    """What tells the libraries how many threads there are, and where."""
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
    told = {name: str(job.threads) for name in names} | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    told |= {"MKL_THREADING_LAYER": "GNU", "LD_LIBRARY_PATH": str(options.work / "venv/lib")}
    if options.tenon:
        told["TENON"] = str(options.tenon)
    if job.threads > 1 and job.workers is not None:
        told |= {"LD_PRELOAD": str(options.work / "bin/pinshim.so"), "PIN_ORDER": job.workers}
    return os.environ | told


def run(job: Job, options: argparse.Namespace, out, errors) -> bool:
    """Runs a job, its lines going to the file; whether it went well."""
    pin = ["taskset", "-c", "0"] if job.threads == 1 else []
    told = environment(job, options)
    done = subprocess.run(
        [*pin, *job.command], input=job.fed, text=True, stdout=out, stderr=errors, env=told, check=False
    )
    return done.returncode == 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commas = lambda text: text.split(",")
    parser.add_argument("work", type=lambda text: Path(text).resolve())
    parser.add_argument("out", type=Path)
    parser.add_argument("--tenon", type=lambda text: Path(text).resolve(), help="folder of tenon and its plugins")
    parser.add_argument("--only", type=commas, default=list(SECTIONS), help="sections")
    parser.add_argument("--sides", type=commas, help="sides of models; all without it")
    parser.add_argument("--threads", type=commas, default=["1", "2"])
    parser.add_argument("--match", default="", help="only sizes with this text")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement, beyond its five samples")
    options = parser.parse_args()
    unknown = set(options.only) - set(SECTIONS)
    if not options.tenon and set(options.only) & {"products", "rows", "layers", "models"}:
        parser.error("--tenon is missing: only limits and int8 are measured without it")
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return options


def main() -> None:
    options = arguments()
    plan, failed = Plan(options), 0
    if not options.out.exists():
        about = subprocess.run(
            [HERE.parent / "record.py", "--machine"], cwd=HERE, capture_output=True, text=True, check=True
        )
        options.out.write_text(about.stdout)
    with options.out.open("a") as out, Path(f"{options.out}.err").open("a") as errors:
        for section in options.only:
            for threads in map(int, options.threads):
                jobs = list(SECTIONS[section](plan, threads))
                rounds = 1 if section == "limits" else options.rounds
                # The sides of a size follow one another, so that what slows the machine slows all of them.
                failed += sum(not run(job, options, out, errors) for job in jobs * rounds)
    if failed:
        sys.exit(f"{failed} measurements failed: see {options.out}.err")


if __name__ == "__main__":
    main()
