"""What `.ci/gpu` measures: the rows that both sides share, how a result is printed, and the targets.

A line is one JSON object in the form of benches/records: bench, peer, version, size, threads, median_ns, min_ns, max_ns,
samples, rate, best_rate, unit, and `gpu` for the device's name. `rate` is work per nanosecond at the median, in thousands
of millions a second. Ours have `checked`: with what results were compared before, or that nothing could be asked. A row
that could not be measured is a line with bench, peer, size and `failed`.
"""

import fnmatch
import json
import os
from dataclasses import dataclass

# For who tries the scripts where there is no GPU, or a slow one: other rows, under other names.
SMALL = bool(os.environ.get("TENON_GPU_SMALL"))
KIB, MIB = 1 << 10, 1 << 20
PRODUCTS = {"f32": "float", "tf32": "float", "f16": "half", "bf16": "bfloat16"}
PRODUCT_SIZES = (16, 32) if SMALL else (1024, 2048, 4096, 8192)
# Bytes of each input of what moves memory.
MEMORY_SIZES = {"256MiB": 256 * MIB, "1GiB": 1024 * MIB}
if SMALL:
    MEMORY_SIZES = {"64KiB": 64 * KIB, "256KiB": 256 * KIB}
# Elements in a row, and in one of the matrix that is transposed.
ROW, COLUMNS = 1024, 8192
NODES = 20 if SMALL else 1000
COPY_SIZE, COPY_BYTES = ("64KiB", 64 * KIB) if SMALL else ("256MiB", 256 * MIB)
# Side of the matrices that are multiplied beside a copy.
PRODUCT = 64 if SMALL else 4096
MODELS = ("resnet50", "bert_layer")
MODEL_DTYPES = ("f32", "bf16")
BATCHES = (1, 2) if SMALL else (1, 32)


@dataclass(frozen=True)
class Memory:
    """An op that moves memory: Tenon's op, the inputs' shapes with `n` for the rows, options, the elements of a row, and
    float32 tensors that it reads and writes, as multiples of the input."""

    name: str
    op: str
    shapes: str
    options: tuple[str, ...] = ()
    tensors: int = 2
    row: int = ROW

    def rows(self, total: int) -> int:
        """Rows of an input of so many bytes."""
        return total // 4 // self.row

    def sweep(self) -> str:
        """The sizes as Tenon takes them, in one process: it costs seconds to start one."""
        first, last = (self.rows(total) for total in (min(MEMORY_SIZES.values()), max(MEMORY_SIZES.values())))
        return f"n={first}..{last}:+{last - first}"


MEMORY = (
    Memory("relu", "Relu", "features=[n,1024]"),
    Memory("add", "AddV2", "x=[n,1024],y=[n,1024]", tensors=3),
    Memory("tanh", "Tanh", "x=[n,1024]"),
    # On a GPU a GELU is a chain of elementwise ops, its constants scalars: one generated kernel.
    Memory("gelu", "_FusedElementwise", "inputs=[n,1024]+[]+[]+[]",
           ("--attr", "program=Mul i0 i1; Erf %0; AddV2 %1 i2; Mul i0 i3; Mul %3 %2")),
    Memory("softmax", "Softmax", "logits=[n,1024]"),
    Memory("layer_norm", "_FusedLayerNorm", "x=[n,1024],scale=[1024],offset=[1024]"),
    Memory("transpose", "Transpose", "x=[n,8192]", ("--value", "perm=[1,0]"), row=COLUMNS),
)


def product_work(n: int) -> float:
    """Operations of a product of two squares."""
    return 2.0 * n**3


def line(bench: str, peer: str, size: str, version: str, samples: list[float], work: float, unit: str, **more) -> dict:
    """A result. `samples` are nanoseconds, sorted."""
    median = samples[len(samples) // 2]
    told = {"bench": bench, "peer": peer, "version": version, "size": size, "threads": 1}
    told |= {"median_ns": round(median, 2), "min_ns": round(samples[0], 2), "max_ns": round(samples[-1], 2)}
    told |= {"samples": len(samples), "rate": float(f"{work / median:.5g}"), "best_rate": float(f"{work / samples[0]:.5g}")}
    return told | {"unit": unit} | more


def failed(bench: str, peer: str, size: str, why: object, **more) -> dict:
    """A row that could not be measured."""
    return {"bench": bench, "peer": peer, "size": size, "failed": " ".join(str(why).split())[:400]} | more


def show(row: dict) -> None:
    """Prints a line at once: what was measured before a stage runs out of time stays."""
    print(json.dumps(row), flush=True)


@dataclass(frozen=True)
class Target:
    """What a row has to reach. `kind` is
    ratio      our time over the peer's is at most `limit`
    share      our rate over the rate of `peer_bench` at the same size is at least `limit`
    cost       our time, in microseconds a node, is at most `limit`"""

    pattern: str
    kind: str
    limit: float
    peer_bench: str = ""


TARGETS = (
    Target("product_*", "ratio", 1.0),
    Target("memory_*", "share", 0.9, "copy_device"),
    Target("nodes_eager", "cost", 3.0),
    Target("nodes_captured", "cost", 1.0),
    Target("model_*", "ratio", 0.9),
    Target("copy_to_device", "share", 0.95, "copy_to_device"),
    # Copying and computing at once takes hardly longer than the longer of the two.
    Target("copy_overlapped", "share", 0.9, "copy_overlapped"),
)


def target_of(bench: str) -> Target | None:
    """The target of a row."""
    return next((target for target in TARGETS if fnmatch.fnmatchcase(bench, target.pattern)), None)
