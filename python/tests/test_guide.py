"""The guide's pages do what they show."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "least"), [("python.md", 5), ("sweep-cluster.md", 1)])
def test_the_code_of_the_guide_runs(
    name: str, least: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/guide" / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    if name == "python.md":
        own, built_in = names["own"], names["built_in"]
        assert (own.policy, built_in.policy) == ("Fifo", "fifo") and own.frames == built_in.frames
        assert own.misses == built_in.misses
