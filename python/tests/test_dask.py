"""Sweeps on Dask, the engine of a cluster."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import flashwise
import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Any:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def grid(folder: pathlib.Path, requests: int) -> str:
    (folder / "mix.toml").write_text(
        f'name = "mix"\n[[flows]]\nrequests = {requests}\nsynthetic.read_share = 0.5\n'
        'synthetic.access = "random"\nsynthetic.size.fixed.bytes = 4096\n'
        "synthetic.pacing.closed.queue_depth = 4\n"
    )
    path = folder / "grid.toml"
    path.write_text('device = "samsung-960-evo"\nworkload = "mix.toml"\nseeds = [1, 2, 3, 4, 5, 6, 7, 8]\n')
    return str(path)


def test_two_workers_give_what_this_process_gives(client: Any, tmp_path: pathlib.Path) -> None:
    path = grid(tmp_path, 400)
    with client.get_executor() as executor:
        assert flashwise.sweep(path, executor=executor).cells == flashwise.sweep(path).cells


def test_cells_of_a_worker_that_dies_are_run_again(client: Any, tmp_path: pathlib.Path) -> None:
    path = grid(tmp_path, 20_000)
    killed: list[int] = []

    def kill(stage: str, fraction: float) -> None:
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], 9)

    with client.get_executor() as executor:
        sweep = flashwise.sweep(path, executor=executor, progress=kill)
    assert killed and sweep.failed == 0
    assert sweep.cells == flashwise.sweep(path).cells
