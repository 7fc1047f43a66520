"""Data frames of other libraries, where they are installed (by `make test-full`)."""

from __future__ import annotations

import flashwise
import pytest


def run() -> flashwise.Simulation:
    return flashwise.simulate("machado-4g", rw="randrw", iodepth=8, requests=5000)


def test_polars_takes_a_result(requests: str) -> None:
    polars = pytest.importorskip("polars")
    result = run()
    frame = polars.DataFrame(result)
    assert frame["iops"].to_list() == [interval.iops for interval in result.time_series.intervals]
    assert polars.DataFrame(flashwise.trace.open(requests)).filter(polars.col("operation") == "write").height == 50


def test_pandas_takes_a_result() -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    result = run()
    has_own = hasattr(pandas.DataFrame, "from_arrow")
    frame = pandas.DataFrame.from_arrow(result) if has_own else pyarrow.table(result).to_pandas()
    assert frame["requests"].sum() == 5000
