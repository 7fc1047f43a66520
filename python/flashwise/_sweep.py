"""Sweeps, on this machine or on whatever an executor has."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any

from . import _native
from . import device as _device
from ._errors import Error, UsageError
from ._inputs import StrPath, is_file, to_toml
from ._progress import Listener, shown
from .device import Device
from .results import Sweep

IN_FLIGHT = 256
"""Tasks that an executor has at a time: enough for every worker of a cluster, and few to lose when it ends."""

Outcome = tuple[int, "str | None", "str | None"]
"""A cell's place, its rows as JSON, and the error of its simulation."""


def run_cells(cells: list[tuple[int, str]]) -> list[Outcome]:
    """Runs cells; what a worker of an executor calls."""
    done: list[Outcome] = []
    for place, cell in cells:
        try:
            done.append((place, _native.run_sent(cell), None))
        except Error as error:
            done.append((place, None, str(error)))
    return done


def sweep(
    grid: Mapping[str, Any] | StrPath,
    *,
    executor: Executor | None = None,
    results: StrPath | None = None,
    jobs: int = 0,
    cells_per_task: int = 1,
    progress: bool | Listener | None = None,
) -> Sweep:
    """Runs a simulation for each combination of values.

    Cells are independent and have seeds of their own, so the result is the same to the bit wherever they run.

    Args:
        grid: the path of a grid's TOML file, as ``flashwise sweep`` takes it, or a mapping with the same keys; its
            ``device`` and ``workload`` may also be a Device and a mapping.
        executor: where the cells run: any executor of :mod:`concurrent.futures`, such as a ``ProcessPoolExecutor`` or
            Dask's ``Client.get_executor()``. What happens to the cells of a worker that dies is up to it. By default
            they run in this process.
        results: a file that gets a line for each finished cell; cells that it has are not run again. It is the
            program's results file, and either may continue what the other has begun.
        jobs: cells at a time without an executor; 0 for one a core.
        cells_per_task: cells of one task of the executor; more of them for short simulations.
        progress: as in :func:`flashwise.simulate`.

    Returns:
        The result. As a table it has a row for each cell, or several if the workload has several flows. A cell whose
        simulation failed has its error instead of figures.

    Raises:
        Error: if the grid is wrong, before anything is run, or the executor broke down.
        KeyboardInterrupt: at Ctrl-C; finished cells are in ``results``.
    """
    if cells_per_task < 1:
        raise UsageError("cells_per_task is at least 1")
    sweeping = _open(grid, None if results is None else os.fspath(results))
    try:
        with shown(progress) as listener:
            if executor is None:
                return Sweep._from(sweeping.run(jobs, listener))
            _run_on(executor, sweeping, cells_per_task, listener)
            return Sweep._from(sweeping.finish())
    finally:
        sweeping.close()


def _run_on(executor: Executor, sweeping: _native.Sweeping, cells: int, listener: Listener | None) -> None:
    pending = sweeping.pending()
    tasks: Iterator[list[int]] = (pending[at : at + cells] for at in range(0, len(pending), cells))
    futures: set[Future[list[Outcome]]] = set()
    done = 0
    try:
        while True:
            while len(futures) < IN_FLIGHT and (task := next(tasks, None)) is not None:
                futures.add(executor.submit(run_cells, [(place, sweeping.cell(place)) for place in task]))
            if not futures:
                return
            finished, futures = wait(futures, return_when=FIRST_COMPLETED)
            for future in finished:
                for place, rows, error in future.result():
                    sweeping.add(place, rows, error)
                    done += 1
            if listener is not None:
                listener("sweeping", done / len(pending))
    except BrokenExecutor as error:
        raise Error(f"the executor broke down after {done} of {len(pending)} cells: {error}") from error
    finally:
        for future in futures:
            future.cancel()


def _open(grid: Mapping[str, Any] | StrPath, results: str | None) -> _native.Sweeping:
    if not isinstance(grid, Mapping):
        return _native.Sweeping(os.fspath(grid), results)
    with tempfile.TemporaryDirectory() as folder:
        own = dict(grid)
        own["device"] = _device_file(own.get("device"), folder)
        own["workload"] = _workload_file(own.get("workload"), folder)
        path = _write(folder, "grid.toml", to_toml({"name": "sweep", **own}))
        return _native.Sweeping(path, results)


def _write(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
    return path


def _device_file(drive: Any, folder: str) -> str:
    if drive is None:
        raise UsageError("the grid has no device")
    if isinstance(drive, (Device, Mapping)):
        return _write(folder, "device.toml", _device.resolve(drive).to_toml())
    name: str = os.fspath(drive)
    return os.path.abspath(name) if is_file(name) and not name.startswith("sim:") else name


def _workload_file(workload: Any, folder: str) -> str:
    if workload is None:
        raise UsageError("the grid has no workload")
    if not isinstance(workload, Mapping):
        path: str = os.fspath(workload)
        return os.path.abspath(path)
    own = json.loads(json.dumps(workload))
    for flow in own.get("flows", []):
        if "path" in (flow.get("trace") or {}):
            flow["trace"]["path"] = os.path.abspath(flow["trace"]["path"])
    return _write(folder, "workload.toml", to_toml(own))
