#!/usr/bin/env python3
"""Tells of the machine where `.ci/gpu run` runs, for its record and its report.

Usage: gpu_machine.py gpu               the GPU's name
       gpu_machine.py line COMMIT       the first line of the record, as JSON: GPU, driver, CPU, date, commit, both sides'
                                        libraries
       gpu_machine.py libraries FOLDER  fills FOLDER with links to NVIDIA's libraries
       gpu_machine.py opened TENON      a line with the versions of the libraries that Tenon opened, and where they lay
       gpu_machine.py state SECTION     a line with clocks, power and temperature, as they are now

The GPU is the first that CUDA_VISIBLE_DEVICES names. Exits 1 where what is asked for cannot be told.
"""

import ctypes
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import gpu_procs
from gpu_rows import SMALL, show

ASKED = {"gpu": "name", "driver": "driver_version", "memory": "memory.total", "max_sm_clock": "clocks.max.sm",
         "max_memory_clock": "clocks.max.memory"}
STATE = {"sm_clock": "clocks.sm", "memory_clock": "clocks.mem", "watts": "power.draw", "celsius": "temperature.gpu",
         "memory_used": "memory.used", "busy": "utilization.gpu", "slowed_by": "clocks_event_reasons.active"}
# What the plugin opens: the plain name, the function that tells the version, and how.
VERSIONS = {"nvrtc": "nvrtcVersion", "cublasLt": "cublasLtGetVersion", "cudnn": "cudnnGetVersion"}
# Libraries and what they open themselves, by name, beside them.
WANTED = re.compile(r"lib(nvrtc|nvrtc-builtins|cublasLt|cublas|cudnn(_\w+)?|nvJitLink)\.so(\.[\d.]+)?$")
# Calls that make Tenon open each library.
CALLS = (["MatMul", "--shape", "a=64x64,b=64x64"],
         ["Conv2D", "--shape", "input=1x8x8x16,filter=3x3x16x16", "--attr", "strides=[1,1,1,1]", "--attr", "padding=SAME"])


def queried(text: str, asked: dict[str, str]) -> dict[str, str]:
    """The first GPU of what nvidia-smi prints as lines of values with commas between."""
    first = text.splitlines()[0] if text.strip() else ""
    values = [value.strip() for value in first.split(",")]
    if len(values) != len(asked):
        return {}
    return dict(zip(asked, values, strict=True))


def smi(asked: dict[str, str]) -> dict[str, str]:
    """What nvidia-smi says; nothing where it is not. One that does not know a name tells the others."""
    if told := smi_at_once(asked):
        return told
    return {name: value for each in asked if len(asked) > 1 for name, value in smi_at_once({each: asked[each]}).items()}


def smi_at_once(asked: dict[str, str]) -> dict[str, str]:
    """The same, in one call, all or nothing."""
    command = ["nvidia-smi", f"--query-gpu={','.join(asked.values())}", "--format=csv,noheader"]
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
    if device:
        command += ["-i", device]
    try:
        done = gpu_procs.run(command, 20)
    except OSError:
        return {}
    return queried(done.out, asked) if done.status == 0 else {}


def wheels() -> list[Path]:
    """Folders of libraries in NVIDIA's packages, which PyTorch uses."""
    packages = {Path(sysconfig.get_paths()[kind]) for kind in ("purelib", "platlib")}
    found = {file.parent for folder in packages for file in folder.glob("nvidia/*/lib/lib*.so*")}
    return sorted(found, reverse=True)


def toolkit() -> list[Path]:
    """Folders of the CUDA toolkit."""
    root = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    return [folder for folder in (root / "lib64", root / "targets/x86_64-linux/lib") if folder.is_dir()]


def link(folder: Path, sources: list[Path]) -> dict[str, str]:
    """Links to what is wanted, under all names, and under the plain one: by that the plugin asks first, and finds what the
    system has. PyTorch's own come first, so that both sides use the same. What belongs to one library is of one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, str] = {}
    for source in sources:
        here: dict[str, list[Path]] = {}
        for file in sorted(source.iterdir()):
            if found := WANTED.match(file.name):
                here.setdefault(family(found[1]), []).append(file)
        for name in here.keys() - taken.keys():
            taken[name] = str(source)
            for file in here[name]:
                (folder / file.name).symlink_to(file.resolve())
                plain = folder / (file.name.split(".so")[0] + ".so")
                if not plain.exists() and ".alt" not in file.name:
                    plain.symlink_to(file.resolve())
    return taken


def family(name: str) -> str:
    """The library to which one belongs."""
    return {"nvrtc-builtins": "nvrtc", "cublasLt": "cublas"}.get(name, "cudnn" if name.startswith("cudnn") else name)


def number(name: str, value: int) -> str:
    """A version as its library tells it, for a reader: 130100 of cuBLAS is 13.1.0, 91900 of cuDNN 9.19.0."""
    if name == "cublasLt" and value < 100000:
        return str(value)
    return f"{value // 10000}.{value // 100 % 100}.{value % 100}"


def version_of(name: str, file: str) -> str:
    """What a library says of itself, in a process of its own: a broken one takes that along."""
    code = "import gpu_machine, sys; print(gpu_machine.ask(*sys.argv[1:]))"
    command = [sys.executable, "-c", code, name, file]
    done = gpu_procs.run(command, 60, {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent)})
    return done.out.strip() if done.status == 0 and done.out.strip() else "unknown"


def ask(name: str, file: str) -> str:
    """The same, in this process."""
    library = ctypes.CDLL(file)
    if name == "nvrtc":
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"
    told = getattr(library, VERSIONS[name])
    told.restype = ctypes.c_size_t
    return number(name, told())


def origin(file: str) -> str:
    """Where a library comes from, without the machine's folders."""
    real = Path(file).resolve()
    if any(real.is_relative_to(folder.resolve()) for folder in wheels()):
        return "PyTorch's packages"
    root = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
    return "CUDA toolkit" if real.is_relative_to(root.resolve()) else "system"


def initialised(text: str) -> dict[str, str]:
    """The libraries that the loader says it started (LD_DEBUG=libs), by plain name."""
    found = {}
    for file in re.findall(r"calling init: (\S+)", text):
        name = re.match(r"lib(cuda|nvrtc|cublasLt|cudnn)\.so", Path(file).name)
        if name:
            found[name[1]] = file
    return found


def opened(tenon: str) -> int:
    """Has Tenon open its libraries, and tells which they were."""
    files: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{folder}/ld"}
        for call in CALLS:
            command = [tenon, "bench", *call, "--device", "CUDA", "--time", "0.01", "--no-dispatch", "--no-roofline"]
            done = gpu_procs.run(command, 60, env)
            print(done.out, done.err, sep="\n", file=sys.stderr)
        for log in Path(folder).iterdir():
            files |= initialised(log.read_text(encoding="utf-8", errors="replace"))
    told = {"bench": "libraries", "peer": "tenon", "size": ""}
    for name in VERSIONS:
        told[name] = f"{version_of(name, files[name])}, {origin(files[name])}" if name in files else "not opened"
    for name, file in files.items():
        print(f"{name}: {Path(file).resolve()}", file=sys.stderr)
    show(told)
    return 0 if "nvrtc" in files else 1


def torch_side() -> dict[str, object]:
    """PyTorch's versions, as it says itself, in a process of its own."""
    code = """
import json, re, torch, gpu_machine
maps = open("/proc/self/maps", encoding="utf-8").read()
blas = re.search(r"\\S+/libcublasLt\\.so\\S*", maps)
told = {"torch": torch.__version__, "torch_cuda": torch.version.cuda, "torch_cudnn": torch.backends.cudnn.version()}
told["torch_cublaslt"] = gpu_machine.ask("cublasLt", blas[0]) if blas else "not opened"
if torch.cuda.is_available():
    facts = torch.cuda.get_device_properties(0)
    told |= {"name": facts.name, "capability": f"{facts.major}.{facts.minor}", "multiprocessors": facts.multi_processor_count,
             "bytes": facts.total_memory}
print(json.dumps(told))
"""
    here = str(Path(__file__).resolve().parent)
    done = gpu_procs.run([sys.executable, "-c", code], 120, {**os.environ, "PYTHONPATH": here})
    if done.status != 0:
        return {"torch": f"cannot be used: {done.err.strip().splitlines()[-1:]}"}
    return json.loads(done.out.splitlines()[-1])


def version(package: str) -> str:
    """Of a package, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def cpu() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def machine(commit: str) -> dict[str, object]:
    """The record's first line."""
    told: dict[str, object] = dict(smi(ASKED))
    told |= {"python": platform.python_version(), "cpu": cpu(), "cores": len(os.sched_getaffinity(0))}
    told |= {"date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "commit": commit, "kernel": platform.release()}
    # A rehearsal is no record.
    return told | torch_side() | ({"rehearsal": "small sizes"} if SMALL else {})


def main() -> int:
    """Exit status."""
    what, *rest = [*sys.argv[1:], ""]
    if what == "gpu":
        name = smi({"gpu": "name"}).get("gpu") or torch_side().get("name")
        print(name or "unknown")
        return 0 if name else 1
    if what == "line":
        print(json.dumps(machine(rest[0])))
        return 0
    if what == "libraries":
        taken = link(Path(rest[0]), [*wheels(), *toolkit()])
        print(json.dumps(taken))
        return 0
    if what == "opened":
        return opened(rest[0])
    if what == "state":
        state = smi(STATE)
        show({"bench": "state", "peer": "machine", "size": rest[0]} | (state or {"failed": "nvidia-smi does not tell"}))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
