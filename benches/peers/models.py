"""One graph, one side, in a process of its own: loads it, compares its results with TensorFlow's, times it, and says
how much memory the process took.

Usage: python models.py WORK --side ort --case resnet50_b1 [--index ops] [--threads 1] [--seconds 2]

The sides: tenon, ort, tensorflow, torch; of models in int8 tenon_int8 and ort_int8. With --index ops the graph is one
of a single product or layer.

`peak_rss_bytes` of a model is the process' VmHWM after three steps, before anything is timed; of a side in Python,
`import_rss_bytes` of it were there before the model, with the interpreter and the library. `off_by` says how far the
results were from TensorFlow's, as a share.
"""

import argparse
import importlib
import warnings
from pathlib import Path

import timing
from prepared import Case, read

# Side -> module, class in it, whether it runs the int8 form, the peer's name in the lines.
SIDES = {
    "tenon": ("sides.tenon", "", False, "tenon"),
    "ort": ("sides.ort", "Step", False, "ort"),
    "tensorflow": ("sides.tf", "Step", False, "tensorflow"),
    "torch": ("sides.torch_graph", "Step", False, "torch_channels_last"),
    "tenon_int8": ("sides.tenon", "", True, "tenon"),
    "ort_int8": ("sides.ort", "QuantisedStep", True, "ort_static"),
}
STEPS_FOR_MEMORY = 3


def of_peer(case: Case, side: str, threads: int, seconds: float) -> None:
    """Compares, times and prints a peer."""
    module, step_class, int8, peer = SIDES[side]
    library = importlib.import_module(module)
    imported = timing.peak_rss()
    step = getattr(library, step_class)(case, threads)
    for _ in range(STEPS_FOR_MEMORY):
        step.run()
    about = {"peak_rss_bytes": timing.peak_rss(), "import_rss_bytes": imported} if case.is_model() else {}
    about["off_by"] = case.judge(step.results(), int8)
    row = {"bench": bench(case, int8), "peer": peer, "version": library.VERSION}
    row |= {"size": case.size, "threads": threads}
    timing.line(row, timing.measure(step.run, seconds), case.work, case.unit, **about)


def of_tenon(case: Case, side: str, threads: int, seconds: float) -> None:
    """The same of Tenon, whose command does both."""
    from sides import tenon

    int8 = SIDES[side][2]
    record, about = tenon.step(case, threads, seconds, int8)
    row = {"bench": bench(case, int8), "peer": "tenon", "version": record["version"]}
    row |= {"size": case.size, "threads": threads}
    timing.line(row, sorted(record["kernel"]["ns"]), case.work, case.unit, **about)


def bench(case: Case, int8: bool) -> str:
    """Name of the table that a line belongs to."""
    return "model_int8" if int8 else case.bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--side", required=True, choices=SIDES)
    parser.add_argument("--index", default="models", choices=["models", "ops"])
    parser.add_argument("--case", required=True, help="resnet50_b1, or gemm_f32_64x64x64 of ops")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    chosen = parser.parse_args()
    cases = {case.data: case for case in read(chosen.work, chosen.index)}
    if chosen.case not in cases:
        parser.error(f"no {chosen.case} in {chosen.index}; prepared are {', '.join(cases)}")
    measure = of_tenon if chosen.side.startswith("tenon") else of_peer
    warnings.simplefilter("ignore")  # that a peer's own form is an old one
    try:
        measure(cases[chosen.case], chosen.side, chosen.threads, chosen.seconds)
    except Exception as error:  # whatever a library raises is why there is no figure
        timing.skip(f"{chosen.side} {chosen.case} with {chosen.threads} threads", f"{type(error).__name__}: {error}")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
