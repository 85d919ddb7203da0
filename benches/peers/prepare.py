"""Lays down the graphs that all sides run: frozen by TensorFlow, the same in ONNX, quantised; operands and results.

Usage: python prepare.py WORK models FROZEN    FROZEN: what tests/goldens/freeze.py wrote; all models, or those named
       python prepare.py WORK ops              graphs of one product or one layer each

Batches 1 and 8 of a model share one graph. Beside each are the feeds and TensorFlow's results; of a softmax at the end
also what goes into it, since probabilities of random weights are all but 0 and 1 and would hide an error.
"""

import json
import sys
from pathlib import Path

import graphs  # first of those below: it sets TensorFlow's environment
import numpy as np
import ops
import prepared
from graphs import tf1
from quantise import quantise

MODELS = ["mlp", "bert_layer", "mobilenet_v2", "resnet50", "vgg19"]
QUANTISED = ["mlp", "mobilenet_v2", "resnet50", "vgg19"]


def before_softmax(graph_def: tf1.GraphDef, end: str) -> list[str]:
    """What goes into the last node where that is a softmax."""
    node = next(node for node in graph_def.node if node.name == prepared.key(end))
    return [node.input[0] + ":0"] if node.op == "Softmax" else []


def model_cases(entry: dict, frozen: Path, work: Path) -> list[dict[str, object]]:
    """A frozen model at each of its batches."""
    name = entry["name"]
    graph_def = tf1.GraphDef.FromString((frozen / entry["file"]).read_bytes())
    (work / f"{name}.pb").write_bytes((frozen / entry["file"]).read_bytes())
    cases = []
    with np.load(frozen / entry["arrays"]) as arrays:
        for number, golden in enumerate(entry["runs"]):
            feeds = {feed["tensor"]: arrays[feed["array"]] for feed in golden["feeds"]}
            (end,) = golden["fetches"]
            fetches = [end["tensor"], *before_softmax(graph_def, end["tensor"])]
            size = f"{name}_b{next(iter(feeds.values())).shape[0]}"
            told = graphs.describe(graph_def, work, feeds, fetches, size)
            check(work / f"{size}.npz", end["tensor"], arrays[end["array"]])
            cases.append({"name": name, "bench": "model_f32", "size": size} | told)
    feeds, fetches, images = (cases[0][key] for key in ("feeds", "fetches", "channels_first"))
    graphs.convert(graph_def, list(feeds), list(fetches), images, work / f"{name}.onnx")
    return cases


def check(file: Path, tensor: str, golden: np.ndarray) -> None:
    """The results laid down must be those that the frozen model came with."""
    with np.load(file) as archive:
        share = prepared.largest(archive[prepared.key(tensor)], golden)
    if share > prepared.SHARE:
        sys.exit(f"{file.name}: {tensor} is off by {share:.3g} of the golden data: freeze the models again")


def models(work: Path, frozen: Path, chosen: list[str]) -> None:
    """All frozen models, the quantised ones among them."""
    entries = {entry["name"]: entry for entry in json.loads((frozen / "index.json").read_text())["graphs"]}
    cases = []
    for name in MODELS:
        if name not in entries:
            sys.exit(f"{frozen} has no {name}: freeze the models again")
        file = work / f"{name}.cases.json"
        if name in chosen or not file.exists():
            made = model_cases(entries[name], frozen, work)
            if name in QUANTISED:
                quantise(prepared.Case(folder=work, **made[-1]))
            file.write_text(json.dumps(made))
            print(f"{name}: {made[0]['work'] / 1e9:.3g} GFLOP per image or sequence", flush=True)
        cases += json.loads(file.read_text())
    prepared.write(work, "models", cases)


def main(arguments: list[str]) -> None:
    if len(arguments) < 2 or arguments[1] not in ("models", "ops") or (arguments[1] == "models" and len(arguments) < 3):
        sys.exit(__doc__.strip())
    work = Path(arguments[0])
    work.mkdir(parents=True, exist_ok=True)
    if arguments[1] == "models":
        models(work, Path(arguments[2]), arguments[3:] or MODELS)
    else:
        prepared.write(work, "ops", ops.cases(work))


if __name__ == "__main__":
    main(sys.argv[1:])
