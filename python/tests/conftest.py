"""What the tests share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import flashwise
import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def program() -> Program:
    """The program flashwise, where it has been built."""
    path = os.environ.get("FLASHWISE_PROGRAM", "")
    if not os.path.exists(path):
        pytest.skip("the program has not been built")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([path, *arguments], capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def document(program: Program) -> Callable[..., dict[str, Any]]:
    """The document that the program prints with ``-o json``."""

    def run(*arguments: str) -> dict[str, Any]:
        done = program(*arguments, "-o", "json")
        parsed: dict[str, Any] = json.loads(done.stdout)
        return parsed

    return run


@pytest.fixture(scope="session")
def profile() -> flashwise.Profile:
    """The profile of a drive that is learned in a second."""
    return flashwise.learn("sim:intel-optane-905p", effort="quick", score=True, progress=False)


@pytest.fixture
def requests(tmp_path: Any) -> str:
    """A trace of 200 reads and writes."""
    lines = [f"{n * 1000},{'Write' if n % 4 == 0 else 'Read'},{n % 50 * 4096}" for n in range(200)]
    path = tmp_path / "web.csv"
    path.write_text(
        "\n".join(f"{128166372003061629 + n * 10},web,0,{line.split(',')[1]},{line.split(',')[2]},4096,1331"
                  for n, line in enumerate(lines)) + "\n"
    )
    return str(path)
