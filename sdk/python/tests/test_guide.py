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
    assert len(found) == 2
    return found


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The training writes its checkpoints into the working folder.
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {
        "next_inputs": lambda: np.eye(3, dtype=np.float32),
        "next_targets": lambda: np.ones((3, 2), np.float32),
    }
    graph, training = blocks()
    exec(graph, scope)
    with scope["tenon"].Session(scope["graph"]) as session:
        assert session.run(scope["y"], {scope["x"]: np.zeros((1, 3))}).tolist() == [[0, 0]]
        assert scope["step"] is not None
    exec(training, scope)
    assert (tmp_path / "run" / "checkpoint").exists()
