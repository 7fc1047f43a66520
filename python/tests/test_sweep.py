"""Sweeps give the same wherever their cells run."""

from __future__ import annotations

import json
import os
import pathlib
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import flashwise
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import Program

GRID = """
device = "samsung-960-evo"
workload = "mix.toml"
seeds = [1, 2, 3]
[vary]
"flash.read_ns" = [40000, 80000]
"workload.flows.0.synthetic.pacing.closed.queue_depth" = [1, 8]
"""
MIX = """
name = "mix"
[[flows]]
requests = 400
synthetic.read_share = 0.5
synthetic.access = "random"
synthetic.size.fixed.bytes = 4096
synthetic.pacing.closed.queue_depth = 1
"""


@pytest.fixture
def grid(tmp_path: pathlib.Path) -> str:
    (tmp_path / "mix.toml").write_text(MIX)
    (tmp_path / "grid.toml").write_text(GRID)
    return str(tmp_path / "grid.toml")


def processes(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def test_processes_threads_and_the_program_give_the_same_to_the_bit(
    grid: str, program: Program, tmp_path: pathlib.Path
) -> None:
    done = program(
        "sweep", grid, "--results", str(tmp_path / "theirs.jsonl"), "--parquet", str(tmp_path / "theirs.parquet"),
        "-o", "json",
    )
    theirs = json.loads(done.stdout)
    with processes(2) as pool, ThreadPoolExecutor(2) as threads:
        executors: list[Executor | None] = [None, pool, threads]
        sweeps = [flashwise.sweep(grid, executor=executor, cells_per_task=2) for executor in executors]
    table = pyarrow.parquet.read_table(tmp_path / "theirs.parquet")
    for sweep in sweeps:
        assert sweep.to_dict() == theirs
        assert pa.table(sweep).to_pylist() == table.to_pylist()
        assert pa.table(sweep).column_names == table.column_names


def test_either_continues_what_the_other_has_begun(grid: str, program: Program, tmp_path: pathlib.Path) -> None:
    results = str(tmp_path / "results.jsonl")
    program("sweep", grid, "--shard", "1/2", "--results", results, "--parquet", str(tmp_path / "half.parquet"))
    heard: list[float] = []
    with ThreadPoolExecutor(1) as threads:
        sweep = flashwise.sweep(
            grid, executor=threads, results=results, progress=lambda _, fraction: heard.append(fraction)
        )
    assert (sweep.resumed, sweep.failed, len(sweep.cells)) == (6, 0, 12)
    assert heard[-1] == 1.0 and len(heard) <= 6, "half of the cells were run"
    again = program("sweep", grid, "--results", results, "--parquet", str(tmp_path / "all.parquet"), "-o", "json")
    assert json.loads(again.stdout)["cells"] == sweep.to_dict()["cells"]


def test_a_grid_is_a_mapping_too(grid: str) -> None:
    workload = {
        "name": "mix",
        "flows": [
            {
                "requests": 400,
                "synthetic": {
                    "read_share": 0.5,
                    "access": "random",
                    "size": {"fixed": {"bytes": 4096}},
                    "pacing": {"closed": {"queue_depth": 1}},
                },
            }
        ],
    }
    own = {
        "device": flashwise.device.preset("samsung-960-evo"),
        "workload": workload,
        "seeds": [1, 2, 3],
        "vary": {
            "flash.read_ns": [40_000, 80_000],
            "workload.flows.0.synthetic.pacing.closed.queue_depth": [1, 8],
        },
    }
    assert [cell.rows for cell in flashwise.sweep(own).cells] == [cell.rows for cell in flashwise.sweep(grid).cells]


def test_a_grid_in_the_current_folder_is_found_by_its_name(grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pathlib.Path(grid).parent)
    assert flashwise.sweep("grid.toml").failed == 0


def die(cells: list[tuple[int, str]]) -> Any:
    os._exit(1)


def test_an_executor_that_breaks_down_is_an_error_and_finished_cells_stay(
    grid: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = str(tmp_path / "results.jsonl")
    monkeypatch.setattr("flashwise._sweep.run_cells", die)
    with processes(1) as pool, pytest.raises(flashwise.Error, match="broke down after 0 of 12 cells"):
        flashwise.sweep(grid, executor=pool, results=results)
    monkeypatch.undo()
    assert flashwise.sweep(grid, results=results).failed == 0


def test_a_grid_that_makes_no_sense_is_refused_before_anything_runs(grid: str) -> None:
    text = pathlib.Path(grid).read_text()
    pathlib.Path(grid).write_text(text.replace("flash.read_ns", "flash.raed_ns"))
    with pytest.raises(flashwise.Error, match="raed_ns"):
        flashwise.sweep(grid)
