#!/usr/bin/env python3
"""Measures PyTorch on this machine's GPU: the peer's lines of `.ci/gpu run`.

Usage: bench_torch.py --sections products,memory,nodes,copies,models [--seconds 0.3] [--dry]

What is on the GPU is timed between events, in samples of at least 2 ms of calls one after another, with the same
operands, as `tenon bench` times a device; models and copies are timed by the clock from host memory to host memory, as
Tenon's steps are. Operands of what moves memory are at least five times the L2 cache, so that no call finds what the
call before left there. Exits 1 when a row could not be measured.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

import torch_models
from gpu_rows import BATCHES, COPY_BYTES, COPY_SIZE, MEMORY, MEMORY_SIZES, MODEL_DTYPES, MODELS, NODES, PRODUCT_SIZES, PRODUCTS
from gpu_rows import COLUMNS, PRODUCT, ROW, SMALL, failed, line, product_work, show

SAMPLE_NS = 2e6
FEWEST, MOST = 5, 61
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


class Bench:
    """The sections."""

    def __init__(self, seconds: float):
        self.seconds, self.device = seconds, torch.device("cuda")
        self.failures = 0
        self.told = {"version": torch.__version__}
        self.more = {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}

    def row(self, bench: str, size: str, samples: list[float], work: float, unit: str, peer: str = "torch") -> None:
        """Prints a result."""
        show(line(bench, peer, size, samples=samples, work=work, unit=unit, **self.told, **self.more))

    def attempt(self, bench: str, size: str, measure: Callable[[], None]) -> None:
        """A failure is a line; what it held is freed before the next row."""
        try:
            with torch.inference_mode():
                measure()
        except Exception as error:  # noqa: BLE001  (whatever PyTorch raises, the other rows are wanted)
            self.failures += 1
            show(failed(bench, "torch", size, error, **self.more))
        gc.collect()
        torch.cuda.empty_cache()

    def products(self) -> None:
        """Squares times squares."""
        for kind, dtype in DTYPES.items():
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            for n in PRODUCT_SIZES:
                self.attempt(f"product_{kind}", str(n), lambda: self.product(kind, dtype, n))
        torch.backends.cuda.matmul.allow_tf32 = False

    def product(self, kind: str, dtype: torch.dtype, n: int) -> None:
        """One of them."""
        a, b, out = (uniform(n, n, device=self.device).to(dtype) for _ in range(3))
        samples = on_device(lambda: torch.mm(a, b, out=out), self.seconds)
        self.row(f"product_{kind}", str(n), samples, product_work(n), "GFLOP/s")

    def memory(self) -> None:
        """What moves memory, and a copy, which shows how fast memory is."""
        for size, total in MEMORY_SIZES.items():
            self.attempt("copy_device", size, lambda: self.copy_device(size, total))
            for op in MEMORY:
                self.attempt(f"memory_{op.name}", size, lambda: self.moving(op, size, total))

    def copy_device(self, size: str, total: int) -> None:
        """From device memory to device memory."""
        source, target = (uniform(total // 4, device=self.device) for _ in range(2))
        samples = on_device(lambda: target.copy_(source), self.seconds)
        self.row("copy_device", size, samples, 2.0 * total, "GB/s")

    def moving(self, op, size: str, total: int) -> None:
        """One op."""
        call = mover(op.name, uniform(total // 4, device=self.device))
        self.row(f"memory_{op.name}", size, on_device(call, self.seconds), float(op.tensors * total), "GB/s")

    def nodes(self) -> None:
        """What a kernel of one element costs: one after another, and as a captured graph."""
        self.attempt("nodes_eager", str(NODES), self.nodes_eager)
        self.attempt("nodes_captured", str(NODES), self.nodes_captured)

    def chain(self) -> Callable[[], None]:
        """So many additions, each of the result before."""
        x, y = torch.zeros(1, device=self.device), torch.ones(1, device=self.device)

        def call() -> None:
            for _ in range(NODES):
                torch.add(x, y, out=x)

        return call

    def nodes_eager(self) -> None:
        """By the clock, to their end: the caller's time is what they cost."""
        self.row("nodes_eager", str(NODES), by_clock(self.chain(), self.seconds), NODES, "Gop/s")

    def nodes_captured(self) -> None:
        """Replayed."""
        replay = captured(self.chain())
        self.row("nodes_captured", str(NODES), by_clock(replay, self.seconds), NODES, "Gop/s")

    def copies(self) -> None:
        """From pinned memory to the device: the link's rate, alone and beside a product."""
        for bench in ("copy_to_device", "copy_overlapped"):
            self.attempt(bench, COPY_SIZE, lambda: self.copy(bench))

    def copy(self, bench: str) -> None:
        """One of them. Beside a product: the copy's rate, when both begin together and the product takes no longer."""
        source = torch.rand(COPY_BYTES // 4).pin_memory()
        target = torch.empty(COPY_BYTES // 4, device=self.device)
        stream, x = torch.cuda.Stream(), torch.rand(PRODUCT, PRODUCT, device=self.device)

        def alone() -> None:
            target.copy_(source, non_blocking=True)

        def both() -> None:
            with torch.cuda.stream(stream):
                torch.mm(x, x)
            alone()

        samples = by_clock(both if bench == "copy_overlapped" else alone, self.seconds)
        self.row(bench, COPY_SIZE, samples, float(COPY_BYTES), "GB/s")

    def models(self) -> None:
        """Whole models, from host memory to host memory: as they are, and as captured graphs."""
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False
        for name in MODELS:
            for kind in MODEL_DTYPES:
                torch.manual_seed(1)
                model = torch_models.MODELS[name](**(torch_models.SMALL[name] if SMALL else {})).eval()
                memory = torch.channels_last if name == "resnet50" else torch.preserve_format
                model = model.to(self.device, DTYPES[kind], memory_format=memory)
                for batch in BATCHES:
                    self.attempt(f"model_{name}_{kind}", f"b{batch}", lambda: self.model(model, name, kind, batch))

    def model(self, model: nn.Module, name: str, kind: str, batch: int) -> None:
        """One batch of one model."""
        feed = model.feeds(batch)[0].pin_memory()
        bench, size = f"model_{name}_{kind}", f"b{batch}"
        samples = by_clock(lambda: model(feed.to(self.device, non_blocking=True)).cpu(), self.seconds)
        self.row(bench, size, samples, batch, "Gimage/s")
        x = feed.to(self.device)
        results: list[torch.Tensor] = []

        def forward() -> None:
            results[:] = [model(x)]

        replay = captured(forward)

        def whole() -> None:
            x.copy_(feed, non_blocking=True)
            replay()
            results[0].cpu()

        self.row(bench, size, by_clock(whole, self.seconds), batch, "Gimage/s", peer="torch_graph")


def uniform(*sizes: int, device: torch.device) -> torch.Tensor:
    """As `tenon bench` fills operands: what is multiplied decides how much power it takes, and so how fast clocks are."""
    return torch.empty(*sizes, device=device).uniform_(-2, 2)


def mover(name: str, x: torch.Tensor) -> Callable[[], object]:
    """An op that moves memory, on the elements of `x`; its output is there already where PyTorch lets it be."""
    out = torch.empty_like(x)
    rows, out_rows = x.view(-1, ROW), out.view(-1, ROW)
    matrix, turned = x.view(-1, COLUMNS), out.view(COLUMNS, -1)
    scale, offset = torch.rand(ROW, device=x.device), torch.rand(ROW, device=x.device)
    calls: dict[str, Callable[[], object]] = {
        "relu": lambda: torch.clamp_min(x, 0, out=out),
        "add": lambda: torch.add(x, x_other, out=out),
        "tanh": lambda: torch.tanh(x, out=out),
        "gelu": lambda: nn.functional.gelu(x),
        "softmax": lambda: torch.softmax(rows, 1, out=out_rows),
        "layer_norm": lambda: nn.functional.layer_norm(rows, (ROW,), scale, offset),
        "transpose": lambda: turned.copy_(matrix.t()),
    }
    x_other = torch.rand_like(x) if name == "add" else x
    return calls[name]


def captured(call: Callable[[], None]) -> Callable[[], None]:
    """A CUDA graph of what `call` launches. Warmed up on a stream of its own, as torch.cuda.graph wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def on_device(call: Callable[[], object], seconds: float) -> list[float]:
    """Nanoseconds a call between events, sorted."""

    def timed(calls: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6 / calls

    return sampled(timed, seconds)


def by_clock(call: Callable[[], object], seconds: float) -> list[float]:
    """Nanoseconds a call by the clock, each to its end on the device, sorted."""

    def timed(calls: int) -> float:
        begin = time.perf_counter_ns()
        for _ in range(calls):
            call()
            torch.cuda.synchronize()
        return (time.perf_counter_ns() - begin) / calls

    return sampled(timed, seconds)


def sampled(timed: Callable[[int], float], seconds: float) -> list[float]:
    """Samples for about `seconds`, after a warm-up that chooses algorithms and raises clocks; each of 2 ms or one call."""
    timed(2)
    calls = 1
    for _ in range(2):
        calls = max(1, int(SAMPLE_NS / max(timed(calls), 1.0)))
    samples: list[float] = []
    start = time.perf_counter()
    while len(samples) < FEWEST or (len(samples) < MOST and time.perf_counter() - start < seconds):
        samples.append(timed(calls))
    return sorted(samples)


SECTIONS = {
    "products": Bench.products,
    "memory": Bench.memory,
    "nodes": Bench.nodes,
    "copies": Bench.copies,
    "models": Bench.models,
}


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--dry", action="store_true", help="say what would be measured")
    options = parser.parse_args()
    wanted = options.sections.split(",")
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"no section {sorted(unknown)[0]}: there are {', '.join(SECTIONS)}")
    if options.dry:
        print(f"bench_torch: {options.sections} with PyTorch {torch.__version__}")
        return 0
    if not torch.cuda.is_available():
        print("bench_torch: PyTorch sees no GPU", file=sys.stderr)
        return 2
    bench = Bench(options.seconds)
    for name in wanted:
        SECTIONS[name](bench)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
