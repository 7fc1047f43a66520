"""Long calls: other threads run, progress is passed on, Ctrl-C ends them."""

from __future__ import annotations

import importlib.util
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

import flashwise
import pytest


def long_call() -> flashwise.Simulation:
    return flashwise.simulate("samsung-960-evo", rw="randread", iodepth=32, requests=1_000_000, progress=False)


def test_other_threads_run_during_a_call() -> None:
    times: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            times.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    long_call()
    end = time.monotonic()
    done.set()
    thread.join()
    ticks = sum(start < at < end for at in times)
    assert ticks > 200 * (end - start), "a thread that wakes up every millisecond is awake for a fifth of that at least"


def test_a_listener_hears_of_progress_and_may_end_the_call() -> None:
    heard: list[tuple[str, float]] = []
    flashwise.simulate(
        "samsung-960-evo", rw="randread", iodepth=32, requests=2_000_000, progress=lambda *at: heard.append(at)
    )
    assert heard and all(0.0 <= fraction <= 1.0 for _, fraction in heard)
    assert [fraction for _, fraction in heard] == sorted(fraction for _, fraction in heard)

    def stop(stage: str, fraction: float) -> None:
        raise LookupError(stage)

    with pytest.raises(LookupError):
        flashwise.simulate("samsung-960-evo", rw="randread", requests=50_000_000, progress=stop)
    assert flashwise.simulate("samsung-960-evo", rw="read", requests=10).total.requests == 10


def test_a_notebook_without_widgets_has_one_line_that_is_empty_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    class Line:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            assert raw
            lines.append(bundle["text/plain"])

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Line:
        assert raw and display_id and not lines
        lines.append(bundle["text/plain"])
        return Line()

    ipython, shown = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    shown.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ipywidgets" else 1 / 0)
    flashwise.simulate("samsung-960-evo", rw="randread", iodepth=32, requests=1_000_000, progress=True)
    assert lines[0] == "" and lines[-1] == "" and len(lines) > 2
    assert all(line.endswith("%") for line in lines[1:-1])


PROGRAM = """
import flashwise, os, sys, threading

def endless():
    os.mkfifo("web.csv")
    line = "128166372003061629,web,0,Read,4096,8192,1331\\n"
    def write():
        while True:
            try:
                with open("web.csv", "w") as pipe:
                    while True:
                        pipe.write(line * 1000)
            except BrokenPipeError:
                pass
    threading.Thread(target=write, daemon=True).start()
    return flashwise.trace.open("web.csv").info()

cyclic = [page for _ in range(20) for page in range(20_000)]
calls = {
    "simulate": lambda: flashwise.simulate("samsung-960-evo", rw="randread", requests=500_000_000, progress=False),
    "pool": lambda: flashwise.pool(cyclic, ["lru"] * 5000, frames=100, progress=False),
    "learn": lambda: flashwise.learn("sim:intel-p4510", effort="thorough", progress=False),
    "info": endless,
    "death-time": lambda: flashwise.study("death-time", progress=False),
    "dedup-raid": lambda: flashwise.study("dedup-raid", progress=False),
    "stores": lambda: flashwise.study("stores", progress=False),
}
print("started", flush=True)
try:
    calls[sys.argv[1]]()
except KeyboardInterrupt:
    print(flashwise.simulate("samsung-960-evo", rw="read", requests=10).total.requests)
"""


@pytest.mark.parametrize("call", ["simulate", "pool", "learn", "info", "death-time", "dedup-raid", "stores"])
def test_ctrl_c_ends_a_call_and_the_next_one_runs(call: str, tmp_path: pathlib.Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, call], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout is not None and child.stdout.readline() == "started\n"
    time.sleep(0.7)
    child.send_signal(signal.SIGINT)
    try:
        output, _ = child.communicate(timeout=20)
    finally:
        child.kill()
    assert (output, child.returncode) == ("10\n", 0)
