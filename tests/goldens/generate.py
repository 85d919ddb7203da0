"""Makes the golden data again with TensorFlow.

Usage: python generate.py            everything (seconds)
       python generate.py nn conv    only these modules of gen/, `frozen`, `graphs` or `quantize`

Needs the packages of requirements.txt, best in a virtual environment of its own. What comes out
depends on this code and on TensorFlow only; see README.md for what it means and how it is checked.
"""

import importlib
import sys
from pathlib import Path

from gen import session  # noqa: F401  (sets TensorFlow's environment before TensorFlow is imported)

FOLDER = Path(__file__).resolve().parent
MODULES = [
    "elementwise",
    "cast",
    "math_unary",
    "math_binary",
    "reduction",
    "segments",
    "ranking",
    "linalg",
    "decompose",
    "solvers",
    "diag",
    "einsum",
    "fft",
    "arrays",
    "strided_slice",
    "array_index",
    "array_order",
    "array_values",
    "stitch",
    "random",
    "random_parameters",
    "nn",
    "conv",
    "pool",
    "activation",
    "losses",
    "pool_more",
    "fractional",
    "norm_grad",
    "conv_grad",
    "pool_grad",
    "gradient_ops",
    "text",
    "characters",
    "tokens",
    "records",
    "images",
    "codecs",
    "images_more",
    "image_samples",
    "sparse",
    "sets",
    "ragged",
    "levels",
    "recurrent",
    "speech",
    "integrals",
    "audio",
    "fused",
    "composed",
    "programs",
    "quantised_product",
    "quantised_conv",
    "quantised_between",
    "quantise",
    "fake_quant",
    "quantised",
    "quantised_nn",
]

GRAPHS = ["frozen", "gradient_graphs", "graphs", "quantize"]


def main(chosen):
    unknown = set(chosen) - {*MODULES, *GRAPHS}
    if unknown:
        sys.exit(f"unknown: {sorted(unknown)}; expected some of {[*MODULES, *GRAPHS]}")
    total = 0
    for name in chosen or MODULES:
        if name in GRAPHS:
            continue
        for group in importlib.import_module(f"gen.{name}").GROUPS:
            counts = list(group(FOLDER))
            total += sum(counts)
            print(f"{name}.{group.__name__}: {counts} cases")
    if not chosen or "frozen" in chosen:
        from gen.frozen import write

        print(f"frozen: {write(FOLDER / 'frozen', small=True)}")
    if not chosen or "quantize" in chosen:
        from gen.quantised_graphs import write

        print(f"quantize: {write(FOLDER / 'quantize')}")
    if not chosen or "gradient_graphs" in chosen:
        from gen.gradient_graphs import write as write_gradients

        print(f"gradient_graphs: {write_gradients(FOLDER / 'gradient_graphs')}")
    # Last, because it switches TensorFlow to the control flow of version 1.
    if not chosen or "graphs" in chosen:
        from gen.graphs_control import write_graphs

        print(f"graphs: {write_graphs(FOLDER / 'graphs')}")
    print(f"{total} cases")


if __name__ == "__main__":
    main(sys.argv[1:])
