#!/usr/bin/env python3
"""Trains a linear model with the CPU alone and on the GPU, by each optimiser, and compares the losses.

Usage: train_graphs.py TENON WORK [--gpu DEVICE] [--dry]

WORK gets the graphs: variables, their gradients and the updates, all of ops that the GPU has. Each runs through
`tenon run` with all of its nodes on one device; a node that has no kernel there is an error. --gpu CPU:0 tests this
script without a GPU.
"""

import argparse
import ast
import struct
import sys
from pathlib import Path

import gpu_procs
from graphdef import BFLOAT16, FLOAT, INT32, Dims, Graph, Type

# Seconds for one run.
LIMIT = 20.0
STEPS = 12
ROWS, INPUTS, OUTPUTS = 64, 33, 7
HALF = 19
# By dtype: its name, and by how much losses may differ, as a part of the first one.
DTYPES = {FLOAT: ("f32", 1e-5), HALF: ("f16", 2e-2), BFLOAT16: ("bf16", 1e-1)}
# By op: the first value of each slot, scalars before and after the gradient, attributes.
OPTIMISERS = {
    "GradientDescent": ([], [0.1], [], {}),
    "Momentum": ([0.0], [0.02], [0.5], {"use_nesterov": True}),
    "KerasMomentum": ([0.0], [0.02], [0.5], {"use_nesterov": False}),
    "Adagrad": ([0.5], [0.1], [], {"update_slots": True}),
    "AdagradV2": ([0.5], [0.1, 1e-3], [], {"update_slots": True}),
    "Adadelta": ([0.5, 0.5], [0.1, 0.9, 1e-3], [], {}),
    "RMSProp": ([1.0, 0.0], [0.02, 0.9, 0.5, 1e-3], [], {}),
    "CenteredRMSProp": ([0.0, 1.0, 0.0], [0.02, 0.9, 0.5, 1e-3], [], {}),
    "Adam": ([0.0, 0.0], [0.5, 0.5, 0.02, 0.9, 0.9, 1e-3], [], {"use_nesterov": False}),
    "AdamWithAmsgrad": ([0.0, 0.0, 0.0], [0.5, 0.5, 0.02, 0.9, 0.9, 1e-3], [], {}),
    "AdaMax": ([0.0, 0.0], [0.5, 0.02, 0.9, 0.9, 1e-3], [], {}),
    "AddSign": ([0.0], [0.02, 1.0, 0.5, 0.9], [], {}),
    "Ftrl": ([0.5, 0.0], [], [0.1, 0.0, 0.0, -0.5], {"multiply_linear_by_lr": False}),
    "FtrlV2": ([0.5, 0.0], [], [0.1, 0.0, 0.0, 0.0, -0.5], {"multiply_linear_by_lr": False}),
}
# What is trained in 16 bits: a rule of each number of variables, and one with more than products and roots.
SHORT = ("GradientDescent", "Momentum", "Adam", "CenteredRMSProp", "FtrlV2")


def elements(dtype: int, values: list[float]) -> bytes:
    """Numbers as bytes of a dtype; for bfloat16 they have few digits."""
    if dtype == BFLOAT16:
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{'f' if dtype == FLOAT else 'e'}", *values)


def numbers(count: int, seed: int) -> list[float]:
    """Eighths from -1 to 1, other ones for each seed."""
    return [((at * 37 + seed * 11) % 17 - 8) / 8 for at in range(count)]


class Model:
    """A graph that trains `w`: `set` begins, `train` makes a step, `loss` is the loss before it."""

    def __init__(self, dtype: int):
        self.g, self.dtype, self.set = Graph(dtype), dtype, []

    def constant(self, dims: list[int], values: list[float]) -> str:
        """A tensor of these numbers."""
        return self.g.constant(self.dtype, dims, elements(self.dtype, values))

    def variable(self, name: str, values: list[float]) -> str:
        """The handle of a variable as large as `w`."""
        dims = [INPUTS, OUTPUTS]
        handle = self.g.node("VarHandleOp", [], name, T=None, dtype=Type(self.dtype), shape=Dims(dims))
        first = self.constant(dims, values)
        assign = self.g.node("AssignVariableOp", [handle, first], T=None, dtype=Type(self.dtype))
        self.set.append(f"^{assign}")
        return handle

    def graph(self, op: str) -> Graph:
        """The whole, trained by an optimiser."""
        slots, before, after, attrs = OPTIMISERS[op]
        g = self.g
        x = self.constant([ROWS, INPUTS], numbers(ROWS * INPUTS, 1))
        wanted = self.constant([ROWS, OUTPUTS], numbers(ROWS * OUTPUTS, 2))
        handle = self.variable("w", numbers(INPUTS * OUTPUTS, 3))
        w = g.node("ReadVariableOp", [handle], T=None, dtype=Type(self.dtype))
        y = g.node("MatMul", [x, w], transpose_a=False, transpose_b=False)
        error = g.node("Sub", [y, wanted])
        squares = g.node("Square", [error])
        g.node("Mean", [squares, g.integers(0, 1)], "loss", Tidx=Type(INT32), keep_dims=False)
        scale = self.constant([], [1 / ROWS])
        scaled = g.node("Mul", [error, scale])
        gradient = g.node("MatMul", [x, scaled], transpose_a=True, transpose_b=False)
        count = INPUTS * OUTPUTS
        handles = [self.variable(f"slot{at}", [value] * count) for at, value in enumerate(slots)]
        scalars = [[self.constant([], [value]) for value in values] for values in (before, after)]
        inputs = [handle, *handles, *scalars[0], gradient, *scalars[1]]
        update = g.node(f"ResourceApply{op}", inputs, use_locking=False, **attrs)
        g.node("NoOp", self.set, "set", T=None)
        g.node("NoOp", [f"^{update}"], "train", T=None)
        return g


def scalar(file: Path) -> float:
    """The number in a file of NumPy's with one element."""
    data = file.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    kind = ast.literal_eval(data[10 : 10 + length].decode().strip())["descr"]
    body = data[10 + length :]
    if kind == "<f4":
        return struct.unpack("<f", body)[0]
    return struct.unpack("<e", body)[0] if kind == "<f2" else struct.unpack("<f", b"\0\0" + body)[0]


def loss(tenon: Path, graph: Path, device: str, steps: int) -> float | str:
    """The loss before the last of these steps, or what went wrong."""
    out = graph.with_suffix("")
    command = [str(tenon), "run", str(graph), "--init", "set", "--fetch", "loss", "--target", "train"]
    done = gpu_procs.run([*command, "--device", device, "--repeat", str(steps), "--out", str(out)], LIMIT)
    if done.status != 0:
        return done.err.strip()[-400:] or f"no end within {LIMIT:.0f} s"
    return scalar(out / "loss.npy")


def judged(first: float | str, cpu: float | str, gpu: float | str, tolerance: float) -> str | None:
    """What is wrong with the losses: the first one, and the last ones on both."""
    for found in (first, cpu, gpu):
        if isinstance(found, str):
            return found
    if not cpu < 0.95 * first:
        return f"the CPU learns nothing: {cpu}, first {first}"
    if not abs(cpu - gpu) <= tolerance * first:
        return f"loss {gpu}, on the CPU {cpu}"
    return None


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", type=Path, metavar="TENON")
    parser.add_argument("work", type=Path, metavar="WORK")
    parser.add_argument("--gpu", default="CUDA:0", metavar="DEVICE")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    gpu_procs.end_all_with_this_script()
    options.work.mkdir(parents=True, exist_ok=True)
    wrong = count = 0
    for dtype, (name, tolerance) in DTYPES.items():
        for op in OPTIMISERS:
            if dtype != FLOAT and op not in SHORT:
                continue
            count += 1
            graph = options.work / f"{op}_{name}.pb"
            Model(dtype).graph(op).write(graph)
            if options.dry:
                continue
            runs = (("CPU:0", 1), ("CPU:0", STEPS), (options.gpu, STEPS))
            found = [loss(options.tenon, graph, device, steps) for device, steps in runs]
            problem = judged(*found, tolerance)
            wrong += problem is not None
            print(f"{op} {name}: {problem or 'right'}", flush=True)
    print(f"train_graphs: {count} trainings, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
