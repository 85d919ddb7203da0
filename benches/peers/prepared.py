"""What prepare.py lays down in the scratch folder, as the sides read it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# What ONNX forms call the first dimension of what they are fed.
BATCH = "batch"
# Results may differ from TensorFlow's by this share of the largest of them, as in `tenon bench`.
SHARE = 1e-4
# Of a quantised model's results before the softmax, by their root mean square.
INT8_SHARE = 0.2


@dataclass(frozen=True)
class Case:
    """A graph at one size, with what it is fed and what TensorFlow computes from that."""

    folder: Path
    # Of all its files: `resnet50`, or `gemm_f32_64x64x64`.
    name: str
    bench: str
    size: str
    # Operations of one step, and their unit per nanosecond.
    work: float
    unit: str
    # Name and shape of what is fed (as the graph has it: NHWC), and of what is fetched.
    feeds: dict[str, list[int]]
    fetches: dict[str, list[int]]
    # The feeds that the ONNX form takes as NCHW.
    channels_first: list[str]
    # The beginning of the names of the files with arrays.
    data: str

    def file(self, ending: str) -> Path:
        """A file of the graph: `.pb`, `.onnx`, `_int8.onnx`."""
        return self.folder / f"{self.name}{ending}"

    def arrays(self, names: dict[str, list[int]]) -> dict[str, np.ndarray]:
        """Arrays of feeds or expected results."""
        with np.load(self.folder / f"{self.data}.npz") as archive:
            return {name: archive[key(name)] for name in names}

    def fed(self) -> dict[str, np.ndarray]:
        """What is fed, in the graph's layout."""
        return self.arrays(self.feeds)

    def fed_channels_first(self) -> dict[str, np.ndarray]:
        """What is fed, in the layout of the ONNX form."""
        first = {name: np.ascontiguousarray(x.transpose(0, 3, 1, 2)) for name, x in self.fed_images()}
        return self.fed() | first

    def fed_images(self) -> list[tuple[str, np.ndarray]]:
        """The feeds with channels, last as yet."""
        return [(name, x) for name, x in self.fed().items() if name in self.channels_first]

    def judge(self, found: dict[str, np.ndarray], int8: bool = False) -> float:
        """How far results are from TensorFlow's, as a share.

        Raises ValueError where that is too far.
        """
        expected = self.arrays(self.fetches)
        distance, limit = (spread, INT8_SHARE) if int8 else (largest, SHARE)
        # Probabilities say little of a quantised model; but its graph may have lost the name of what goes into them.
        names = [name for name in expected if name in found and not (int8 and len(found) > 1 and name == self.end())]
        if not int8 and len(names) < len(expected):
            raise ValueError(f"found {', '.join(found)}, expected {', '.join(expected)}")
        shares = {name: distance(found[name], expected[name]) for name in names}
        wrong = [f"{name} is off by {share:.3g}" for name, share in shares.items() if not share <= limit]
        if wrong:
            raise ValueError(f"{'; '.join(wrong)} (expected at most {limit}): not timed")
        return float(f"{max(shares.values()):.3g}")

    def is_model(self) -> bool:
        """False for a graph of one op."""
        return self.bench.startswith("model")

    def end(self) -> str:
        """The last value: of an image classifier the probabilities."""
        return next(iter(self.fetches))


def key(tensor: str) -> str:
    """A tensor's name in archives and file names."""
    return tensor.removesuffix(":0")


def largest(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, as a share of the largest value; infinite where shapes differ."""
    if found.shape != expected.shape:
        return float("inf")
    return float(np.max(np.abs(found - expected)) / max(float(np.max(np.abs(expected))), 1e-30))


def spread(found: np.ndarray, expected: np.ndarray) -> float:
    """The difference's root mean square, as a share of the values'."""
    if found.shape != expected.shape:
        return float("inf")
    return float(np.linalg.norm(found - expected) / max(float(np.linalg.norm(expected)), 1e-30))


def write(folder: Path, index: str, cases: list[dict[str, object]]) -> None:
    """Writes the cases of a section."""
    (folder / f"{index}.json").write_text("\n".join(json.dumps(case) for case in cases) + "\n")


def read(folder: Path, index: str) -> list[Case]:
    """The cases of a section.

    Raises FileNotFoundError where prepare.py has not run.
    """
    lines = (folder / f"{index}.json").read_text().splitlines()
    return [Case(folder=folder, **json.loads(text)) for text in lines]
