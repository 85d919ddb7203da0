"""The code of sdk/docs/python.md, in its order."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
MARK = "<!-- skip: sdk/python/tests/test_guide.py runs it -->"


def blocks() -> list[str]:
    found = re.findall(re.escape(MARK) + r"\n```python\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(found) == 4
    return found


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The training writes its checkpoints into the working folder.
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {
        "next_inputs": lambda: np.eye(3, dtype=np.float32),
        "next_targets": lambda: np.ones((3, 2), np.float32),
    }
    graph, functions, custom, training = blocks()
    exec(graph, scope)
    with scope["tenon"].Session(scope["graph"]) as session:
        assert session.run(scope["y"], {scope["x"]: np.zeros((1, 3))}).tolist() == [[0, 0]]
        assert scope["step"] is not None
    exec(functions, scope)
    with scope["tenon"].Session(scope["loop"]) as session:
        feeds = {scope["start"]: [1.0, 3.0], scope["flag"]: False}
        assert session.run([scope["last"], scope["slope"]], feeds)[0].tolist() == [8, 24]
        feeds[scope["flag"]] = True
        assert session.run(scope["last"], feeds).tolist() == [2, 6]
    exec(custom, scope)
    given = np.array([-2.0, 0.25, 3.0], np.float32)
    assert scope["soft_threshold"].run(given).tolist() == [-1.5, 0, 2.5]
    with scope["tenon"].Graph() as graph:
        x = scope["tenon"].placeholder(np.float32, [3])
        (slope,) = scope["tenon"].gradients(scope["soft_threshold"](x), x)
    with scope["tenon"].Session(graph) as session:
        assert session.run(slope, {x: given}).tolist() == [1, 0, 1]
    exec(training, scope)
    assert (tmp_path / "run" / "checkpoint").exists()
