"""Tenon: `tenon bench` for the time of a step, which it compares first, and `tenon run` for a fresh process' memory."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from prepared import Case, key


def program() -> str:
    """The command, beside its plugins: from run.py."""
    folder = os.environ.get("TENON")
    if not folder:
        sys.exit("TENON is not set: expected the folder with a release build of tenon and its plugins")
    return str(Path(folder) / "tenon")


def timed(case: Case, threads: int, seconds: float, int8: bool = False) -> dict:
    """The record of a step. A float graph is compared with TensorFlow's results, and any graph with itself as it is
    written."""
    data = f"{case.data}_feeds.npz" if int8 else f"{case.data}.npz"
    return bench(case.file("_int8.pb" if int8 else ".pb"), ["--data", str(case.folder / data)], threads, seconds)


def bench(graph: Path, feeds: list[str], threads: int, seconds: float) -> dict:
    """The record of a step that is fed so.

    Raises ValueError where it fails or is wrong.
    """
    wish = ["--threads", str(threads), "--time", str(seconds), "--json", "--no-roofline"]
    command = [program(), "bench", str(graph), *feeds, *wish]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout) if done.stdout else {"records": []}
    if done.returncode or not report["records"]:
        raise ValueError(str(report.get("problems") or done.stderr))
    return report["records"][0]


def peak_rss(case: Case, threads: int, folder: str, fetches: list[str], int8: bool = False) -> int:
    """Bytes that a fresh process has held at once, at the most, after three steps; its results go to `folder`.

    Raises ValueError where the command fails, as for a tensor that the graph does not have.
    """
    graph = case.file("_int8.pb" if int8 else ".pb")
    feeds = [f"{key(name)}={case.folder / case.data}.{key(name)}.npy" for name in case.feeds]
    command = [program(), "run", str(graph), "--threads", str(threads), "--repeat", "3", "--out", folder]
    for flag, values in (("--feed", feeds), ("--fetch", fetches)):
        command += [part for value in values for part in (flag, value)]
    helper = [sys.executable, "-I", "-S", str(Path(__file__).parent.parent / "peak.py")]
    done = subprocess.run([*helper, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"tenon run: {done.stderr}")
    return int(done.stdout)


def results(fetches: list[str], folder: str) -> dict[str, np.ndarray]:
    """What `tenon run` wrote."""
    files = {name: name.replace("/", "_").replace(":", "_") for name in fetches}
    return {name: np.load(Path(folder) / f"{file}.npy") for name, file in files.items()}


def run(case: Case, threads: int, int8: bool) -> dict[str, float]:
    """The peak of a fresh process, and how far its results are from TensorFlow's. A quantised graph need not have all
    tensors that the float graph has: then its end is compared alone."""
    fetches = list(case.fetches)
    with tempfile.TemporaryDirectory() as folder:
        try:
            peak = peak_rss(case, threads, folder, fetches, int8)
        except ValueError:
            if not int8:
                raise
            fetches = [case.end()]
            peak = peak_rss(case, threads, folder, fetches, int8)
        return {"peak_rss_bytes": peak, "off_by": case.judge(results(fetches, folder), int8)}


def step(case: Case, threads: int, seconds: float, int8: bool) -> tuple[dict, dict]:
    """A record; of a model also how far its results are from TensorFlow's, and the peak of a fresh process."""
    about = run(case, threads, int8) if case.is_model() else {}
    return timed(case, threads, seconds, int8), about
