"""Products of bytes by ONNX Runtime and by PyTorch's FBGEMM, the right factor constant and packed once: to 32 bits,
and to bytes with zero points and requantisation.

Usage: python int8.py WORK --side ort [--threads 1] [--seconds 1] [--match 512]

Sums are compared exactly before anything is timed; requantised bytes may be one apart, since the libraries round the
ratio of the scales in ways of their own. Sizes are those of gemm_sizes.txt.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import timing

# Of the left and right factor, and the result. Right factors are symmetric.
LEFT_ZERO, OUT_ZERO = 3, 128
LEFT_SCALE, RIGHT_SCALE, OUT_SCALE = 0.02, 0.01, 0.3


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Left bytes stay under 128, so that no sum of two products saturates, whatever the library's instruction."""
    rng = np.random.default_rng([m, n, k])
    left = rng.integers(0, 128, (m, k), dtype=np.uint8)
    return left, rng.integers(-127, 128, (k, n), dtype=np.int8)


def sums(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Exact: doubles hold all sums of these sizes."""
    return ((left.astype(np.float64) - LEFT_ZERO) @ right.astype(np.float64)).astype(np.int64)


def requantised(exact: np.ndarray) -> np.ndarray:
    """The sums as bytes."""
    scaled = np.rint(exact * (LEFT_SCALE * RIGHT_SCALE / OUT_SCALE)) + OUT_ZERO
    return np.clip(scaled, 0, 255).astype(np.int64)


def by_ort(left: np.ndarray, right: np.ndarray, threads: int):
    """Bench, peer, version, call, result and how far bytes may be off, of both forms."""
    from sides import ort_node

    shape = (left.shape[0], right.shape[1])
    byte, real = np.uint8, np.float32
    zeros = [right, byte(LEFT_ZERO), np.int8(0)]
    call, result = ort_node.prepare(
        "MatMulInteger", [left], list(map(np.asarray, zeros)), np.empty(shape, np.int32), threads
    )
    yield "gemm_u8s8s32_packedB", "ort", ort_node.VERSION, call, result, 0
    factors = [real(LEFT_SCALE), byte(LEFT_ZERO), right, real(RIGHT_SCALE), np.int8(0), real(OUT_SCALE), byte(OUT_ZERO)]
    call, result = ort_node.prepare(
        "QLinearMatMul", [left], list(map(np.asarray, factors)), np.empty(shape, byte), threads
    )
    yield "gemm_u8s8_requant_u8_packedB", "ort", ort_node.VERSION, call, result, 1


def by_torch(left: np.ndarray, right: np.ndarray, threads: int):
    """The same of the form that there is."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    torch.backends.quantized.engine = "fbgemm"
    quantised = torch._make_per_tensor_quantized_tensor
    x = quantised(torch.from_numpy(left), LEFT_SCALE, LEFT_ZERO)
    weights = quantised(torch.from_numpy(np.ascontiguousarray(right.T)), RIGHT_SCALE, 0)
    packed = torch.ops.quantized.linear_prepack(weights, torch.zeros(right.shape[1]))
    call = lambda: torch.ops.quantized.linear(x, packed, OUT_SCALE, OUT_ZERO)
    bench = "gemm_u8s8_requant_u8_packedB"
    yield bench, "torch_fbgemm", torch.__version__, call, lambda: call().int_repr().numpy(), 1


SIDES = {"ort": by_ort, "torch": by_torch}


def measure(chosen: argparse.Namespace, m: int, n: int, k: int) -> None:
    """Compares, times and prints a side's forms of one product."""
    left, right = operands(m, n, k)
    exact = sums(left, right)
    for bench, peer, version, call, result, apart in SIDES[chosen.side](left, right, chosen.threads):
        call()
        expected = requantised(exact) if apart else exact
        off = int(np.max(np.abs(result().astype(np.int64) - expected)))
        if off > apart:
            timing.skip(f"{peer} {bench} {m}x{n}x{k}", f"off by {off}, expected at most {apart}")
            continue
        row = {"bench": bench, "peer": peer, "version": version, "size": f"{m}x{n}x{k}", "threads": chosen.threads}
        timing.line(row, timing.measure(call, chosen.seconds), 2.0 * m * n * k, "GOP/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--side", required=True, choices=SIDES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--match", default="")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # that a peer's own form is an old one
    lines = (Path(__file__).parent / "gemm_sizes.txt").read_text().split("\n")
    for m, n, k in (map(int, line.split()) for line in lines if line):
        if chosen.match in f"{m}x{n}x{k}":
            measure(chosen, m, n, k)


if __name__ == "__main__":
    main()
