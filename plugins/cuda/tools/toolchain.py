"""NVIDIA's tools in a virtual environment: NVRTC, ptxas, cuobjdump and the nvdisasm that it calls.

None of them needs a GPU or a driver. They come as wheels, in the versions of requirements.txt.
"""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


class ToolError(Exception):
    """A tool is missing, or did not do what it was run for."""


@dataclass(frozen=True)
class Toolchain:
    """Where the tools lie. `nvrtc` is the folder of libnvrtc.so.12 and the library of builtins beside it."""

    nvrtc: Path
    ptxas: Path
    cuobjdump: Path
    nvdisasm: Path

    def registers(self, ptx: Path, arch: int) -> str:
        """What ptxas says of a PTX file: registers, memory and spills, and warnings."""
        return run([str(self.ptxas), "-v", f"-arch=sm_{arch}", "-o", os.devnull, str(ptx)]).stderr

    def disassembly(self, cubin: Path) -> str:
        """The resources and the instructions of a cubin."""
        path = f"{self.nvdisasm.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return run([str(self.cuobjdump), "-res-usage", "-sass", str(cubin)], PATH=path).stdout


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; an error says what it printed."""
    told = os.environ | environment
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=told, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise ToolError(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done


def prepare(work: Path) -> Toolchain:
    """The tools in WORK/venv, fetched unless these versions are there already."""
    environment, stamp = work / "venv", work / "venv/requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"fetching NVRTC, ptxas and the disassembler into {environment}", file=sys.stderr)
        venv.create(environment, clear=True, with_pip=True)
        # Wheels only: nothing of theirs is to run while they are installed.
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        run([str(environment / "bin/python"), "-m", "pip", "install", *options, "-r", str(REQUIREMENTS)])
        stamp.write_text(wanted, encoding="utf-8")
    return find(environment)


def find(environment: Path) -> Toolchain:
    """The tools in a virtual environment; the folder `nvidia` is laid out differently by wheels of CUDA 12 and 13."""
    return Toolchain(
        nvrtc=one(environment, "libnvrtc.so.12").parent,
        ptxas=one(environment, "bin/ptxas"),
        cuobjdump=one(environment, "bin/cuobjdump"),
        nvdisasm=one(environment, "bin/nvdisasm"),
    )


def one(environment: Path, name: str) -> Path:
    """The only file whose path ends so."""
    found = sorted(environment.glob(f"lib/python3*/site-packages/nvidia/**/{name}"))
    if len(found) != 1:
        raise ToolError(f"expected one file {name} under {environment}, found {len(found)}: remove the folder and retry")
    return found[0]
