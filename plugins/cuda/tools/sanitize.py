#!/usr/bin/env python3
"""Runs kernels of plugins/cuda under NVIDIA's compute-sanitizer: accesses out of bounds and uninitialised ones
(memcheck), threads of a block that race for shared memory (racecheck).

Usage: sanitize.py SANITIZER TENON LOGS [--tools memcheck,racecheck] [--jobs 6] [--limit 60] [--seconds 150] [--dry]

Each case is a process of its own, `tenon bench` of one op on the GPU, of a size that leaves a rest beside whole packs
and blocks. It also compares results with the reference kernels, so that a wrong one fails here too. Cases that do not
fit into --seconds are said to be skipped, which is a failure. Exits 0 when the tools found nothing, and 75 when there is no
such tool, or it cannot work on this machine: then the last line says why, and nothing was looked at.
"""

import argparse
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu_procs

# Kernels of the plugin, not those of a library for the same op.
OWN = ("--label", "")
# (op, inputs, other options): a case for each way in which kernels use memory; types of 16 bits where packs differ.
CASES = (
    ("Relu", "features=1000003", ()),
    ("Relu", "features=1000003", ("--dtype", "half")),
    ("Tanh", "x=4099", ()),
    ("AddV2", "x=1000003,y=1000003", ()),
    ("AddV2", "x=127x33,y=33", ()),
    ("Mul", "x=5x1x7,y=1x9x1", ("--dtype", "bfloat16")),
    ("_FusedElementwise", "inputs=33x1027+1027", ("--attr", "program=AddV2 i0 i1; Tanh %0; Relu %1")),
    ("Select", "condition=1021,t=1021,e=1021", ()),
    ("Cast", "x=10007", ("--attr", "DstT=half")),
    ("Fill", "", ("--value", "dims=[1021]", "--shape", "value=[]")),
    ("Sum", "input=129x1027", ("--value", "reduction_indices=[1]")),
    ("Sum", "input=1027x129", ("--value", "reduction_indices=[0]")),
    ("Max", "input=65537", ("--value", "reduction_indices=[0]")),
    ("ArgMax", "input=129x1027", ("--value", "dimension=1")),
    ("Cumsum", "x=33x4099", ("--value", "axis=1")),
    ("Cumsum", "x=1x65537", ("--value", "axis=1")),
    ("TopKV2", "input=65x64", ("--value", "k=2")),
    ("TopKV2", "input=3x40961", ("--value", "k=7")),
    ("UnsortedSegmentSum", "data=4099x9,segment_ids=4099", ("--value", "num_segments=65")),
    ("Softmax", "logits=65x1023", ()),
    ("Softmax", "logits=3x40961", ()),
    ("_FusedLayerNorm", "x=65x1023,scale=1023,offset=1023", ()),
    ("Transpose", "x=513x1027", ("--value", "perm=[1,0]")),
    ("Transpose", "x=7x33x65", ("--value", "perm=[2,0,1]", "--dtype", "half")),
    ("ConcatV2", "values=33x7+33x9", ("--value", "axis=1")),
    ("Pad", "input=31x33,paddings=2x2", ()),
    ("GatherV2", "params=129x65", ("--value", "indices=[0,128,5]", "--value", "axis=0")),
    ("MatMul", "a=129x65,b=65x67", OWN),
    ("MatMul", "a=129x64,b=64x72", ("--dtype", "half", *OWN)),
    ("Conv2D", "input=1x17x19x5,filter=3x3x5x7", ("--attr", "strides=[1,1,1,1]", "--attr", "padding=SAME", *OWN)),
    ("MaxPool", "input=1x17x19x5", ("--attr", "ksize=[1,3,3,1]", "--attr", "strides=[1,2,2,1]", "--attr", "padding=SAME")),
)
SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")
TOO_SLOW = "TOO SLOW, not timed"
REFUSED = re.compile(r"^.*(?:Device not supported|does not support this device|[Ii]njection library).*$", re.M)
FOUND = re.compile(r"^=+ (?!COMPUTE|.*SUMMARY)(.+)$", re.MULTILINE)


def command(sanitizer: Path, tenon: Path, tool: str, case: tuple, log: Path) -> list[str]:
    """One case under one tool. Errors of the API that are asked for (is there such a library?) are no findings."""
    op, shape, more = case
    wanted = [str(sanitizer), "--tool", tool, "--log-file", str(log), "--error-exitcode", "86"]
    if tool == "memcheck":
        wanted += ["--report-api-errors", "no"]
    shapes = ["--shape", shape] if shape else []
    kernel = ["--device", "CUDA", "--time", "0.01", "--no-dispatch", "--no-roofline"]
    return [*wanted, str(tenon), "bench", op, *shapes, *more, *kernel]


def finding(tool: str, status: int, log: str, said: str) -> str | None:
    """What is wrong, by the exit status and the tool's log; None where nothing is."""
    summaries = SUMMARY.findall(log)
    if not summaries:
        return f"{tool} wrote no summary (exit {status}): {said.strip()[-300:]}"
    count = sum(int(number) for _, number in summaries)
    if count:
        first = FOUND.search(log)
        return f"{count} found by {tool}: {first[1].strip() if first else 'see the log'}"
    # Under these tools a call may take longer than the command times; its values were judged before.
    if status != 0 and TOO_SLOW not in said:
        return f"tenon bench ended with {status}: {said.strip()[-300:]}"
    return None


def refusal(options: argparse.Namespace) -> str | None:
    """Why the tool cannot work here, by a first case; None where it can."""
    if shutil.which(str(options.sanitizer)) is None:
        return f"there is no {options.sanitizer.name}: it comes with the CUDA toolkit"
    log = options.logs / "first.log"
    told = command(options.sanitizer, options.tenon, "memcheck", CASES[2], log)
    try:
        done = gpu_procs.run(told, options.limit)
    except OSError as error:
        return f"{options.sanitizer.name} cannot be started: {error}"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return refused(text + done.out + done.err)


def refused(text: str) -> str | None:
    """The words by which the tool says that it cannot look at this device at all."""
    found = REFUSED.search(text)
    return found[0].strip("= ").strip() if found else None


class Run:
    """All cases under all tools."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.end = options, time.monotonic() + options.seconds

    def one(self, job: tuple[str, int]) -> str | None:
        """One case: None, or what is wrong."""
        tool, number = job
        case = CASES[number]
        what = f"{tool} {case[0]} {case[1]} {' '.join(case[2])}".rstrip()
        left = self.end - time.monotonic()
        if left < 5:
            return f"{what}: skipped, no time was left"
        log = self.options.logs / f"{tool}-{number:02}-{case[0]}.log"
        told = command(self.options.sanitizer, self.options.tenon, tool, case, log)
        limit = min(self.options.limit, left)
        done = gpu_procs.run(told, limit)
        if done.status is None:
            print(f"{what}: no end within {limit:.0f} s", flush=True)
            return f"{what}: no end within {limit:.0f} s"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        wrong = finding(tool, done.status, text, done.out + done.err)
        print(f"{what}: {wrong or 'nothing found'}", flush=True)
        return f"{what}: {wrong}" if wrong else None


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sanitizer", type=Path, metavar="SANITIZER")
    parser.add_argument("tenon", type=Path, metavar="TENON")
    parser.add_argument("logs", type=Path, metavar="LOGS")
    parser.add_argument("--tools", default="memcheck,racecheck")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    jobs = [(tool, number) for number in range(len(CASES)) for tool in options.tools.split(",")]
    if options.dry:
        print(f"sanitize: {len(jobs)} commands such as")
        print(" ".join(command(options.sanitizer, options.tenon, "memcheck", CASES[0], Path("LOG"))))
        return 0
    options.logs.mkdir(parents=True, exist_ok=True)
    gpu_procs.end_all_with_this_script()
    if why := refusal(options):
        print(f"not run: {why}")
        return 75
    with ThreadPoolExecutor(options.jobs) as pool:
        wrong = [each for each in pool.map(Run(options).one, jobs) if each]
    for each in wrong:
        print(f"wrong: {each}")
    print(f"sanitize: {len(jobs)} runs, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
