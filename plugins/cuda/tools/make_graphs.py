#!/usr/bin/env python3
"""Lays down the graphs that `.ci/gpu run` measures, with what they are fed and PyTorch's results.

Usage: make_graphs.py FOLDER [--small]

    resnet50_f32.pb, _bf16.pb, bert_layer_f32.pb, _bf16.pb    the models, 300 MB
    resnet50_f32_b1.npz ...                                   feeds of a batch, and `output` as PyTorch computes it
    chain.pb                                                  1,000 additions, each of the result before
    copy_to_device.pb, copy_overlapped.pb                     a large feed that is summed up, alone and beside a product

PyTorch computes on the GPU, without TF32; on the CPU where there is none. --small makes models of a few channels, with
which a machine without a GPU can tell whether the graphs are right.
"""

import argparse
import sys
from pathlib import Path

import torch

import torch_models
from graphdef import FLOAT, INT32, Graph, Type, npz
from gpu_rows import BATCHES, COPY_BYTES, MODEL_DTYPES, NODES, PRODUCT, SMALL



def models(folder: Path, small: bool) -> None:
    """The models' graphs, feeds and results; the weights are those of bench_torch.py."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, make in torch_models.MODELS.items():
        for kind in MODEL_DTYPES:
            torch.manual_seed(1)
            dtype, code = torch_models.DTYPES[kind]
            model = make(**(torch_models.SMALL[name] if small else {})).eval().to(dtype)
            model.graph(code).write(folder / f"{name}_{kind}.pb")
            model = model.to(device)
            for batch in (1, 2) if small else BATCHES:
                x = model.feeds(batch)[0]
                with torch.inference_mode():
                    output = model(x.to(device)).cpu()
                feeds = {model.inputs[0]: model.tenon_feed(x), "output": output}
                npz(folder / f"{name}_{kind}_b{batch}.npz", **feeds)


def chain() -> Graph:
    """x + y + y + ..., of one element. `y` is fed, so that nothing of it can be computed beforehand."""
    g = Graph(FLOAT)
    x, y = (g.placeholder(name, [1]) for name in ("x", "y"))
    for at in range(NODES):
        x = g.node("AddV2", [x, y], "output" if at + 1 == NODES else "")
    return g


def copy(beside: bool) -> Graph:
    """The sum of a large feed; beside it, where wanted, a product of matrices that are filled with a fed value."""
    g = Graph(FLOAT)
    x = g.placeholder("x", [COPY_BYTES // 4])
    g.node("Sum", [x, g.integers(0)], "sum", Tidx=Type(INT32), keep_dims=False)
    if beside:
        value = g.placeholder("value", [])
        dims = g.integers(PRODUCT, PRODUCT)
        filled = g.node("Fill", [dims, value], index_type=Type(INT32))
        product = g.node("MatMul", [filled, filled], transpose_a=False, transpose_b=False)
        g.node("Max", [product, g.integers(0, 1)], "product", Tidx=Type(INT32), keep_dims=False)
    return g


def main() -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--small", action="store_true", default=SMALL)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    chain().write(options.folder / "chain.pb")
    copy(False).write(options.folder / "copy_to_device.pb")
    copy(True).write(options.folder / "copy_overlapped.pb")
    models(options.folder, options.small)
    return 0


if __name__ == "__main__":
    sys.exit(main())
