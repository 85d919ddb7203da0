#!/usr/bin/env python3
"""Prints the machine's line of a record of `.ci/gpu run`: gpu, driver, cuda, torch, cpu, cores, date, commit, kernel.

Usage: gpu_machine.py COMMIT [--gpu | --libraries]

--gpu prints the GPU's name alone; --libraries the folders of NVIDIA's libraries among Python's packages, as the plugin's
knob cuda.library_path takes them.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ASKED = {"gpu": "name", "driver": "driver_version", "memory": "memory.total", "clock": "clocks.max.sm"}


def queried(text: str) -> dict[str, str]:
    """The first GPU of what nvidia-smi prints as lines of values with commas between."""
    first = text.splitlines()[0] if text.strip() else ""
    values = [value.strip() for value in first.split(",")]
    if len(values) != len(ASKED):
        return {}
    return dict(zip(ASKED, values, strict=True))


def gpu() -> dict[str, str]:
    """What nvidia-smi says; nothing where it is not."""
    command = ["nvidia-smi", f"--query-gpu={','.join(ASKED.values())}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return queried(done.stdout) if done.returncode == 0 else {}


def libraries() -> list[str]:
    """Folders of wheels of NVIDIA; those of CUDA 13 hold several libraries in one."""
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    return sorted({str(file.parent) for file in packages.glob("*/lib/lib*.so*")})


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


def main() -> int:
    """Exit status."""
    if "--libraries" in sys.argv:
        print(":".join(libraries()))
        return 0
    told = gpu()
    if "--gpu" in sys.argv:
        print(told.get("gpu", "unknown"))
        return 0 if told else 1
    told |= {"torch": version("torch"), "python": platform.python_version(), "cpu": cpu(), "cores": os.cpu_count()}
    told |= {"date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": sys.argv[1], "kernel": platform.release()}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
