"""Tables go to other libraries without a copy."""

from __future__ import annotations

import flashwise
import pyarrow as pa


def test_a_simulation_is_a_table_of_its_intervals() -> None:
    run = flashwise.simulate("samsung-960-evo", rw="randread", requests=5000, interval="1ms")
    table = pa.table(run)
    assert table.num_rows == len(run.time_series.intervals)
    for name in ("start_ns", "requests", "iops", "bytes_per_s", "mean_response_ns", "write_amplification"):
        assert table[name].to_pylist() == [getattr(interval, name) for interval in run.time_series.intervals]
    assert table["write_amplification"].null_count == table.num_rows, "nothing is written"


def addresses(table: pa.Table) -> list[int]:
    columns = (table.column(name).chunk(0) for name in table.column_names)
    return [buffer.address for column in columns for buffer in column.buffers() if buffer is not None]


def test_each_reader_of_a_table_reads_the_same_memory() -> None:
    run = flashwise.simulate("samsung-960-evo", rw="randread", requests=1000)
    one, other = pa.table(run), pa.table(run)
    assert addresses(one) == addresses(other) and len(set(addresses(one))) >= 6
    values = one["iops"].to_pylist()
    del run, other
    assert one["iops"].to_pylist() == values, "a table keeps its memory"


def test_pools_and_findings_are_tables(profile: flashwise.Profile, requests: str) -> None:
    pools = flashwise.pool(requests, "lru,arc", frames=[4, 8], alpha=2, kr=8, kw=4)
    table = pa.table(pools)
    assert table["policy"].to_pylist() == [result.policy for result in pools.results]
    costs = [result.model_cost.total_reads for result in pools.results if result.model_cost]
    assert table["model_cost.total_reads"].to_pylist() == costs
    findings = flashwise.audit(requests, profile)
    assert pa.table(findings)["rule"].to_pylist() == [finding.rule for finding in findings.findings]


def test_the_requests_of_a_trace_are_a_table(requests: str) -> None:
    trace = flashwise.trace.open(requests)
    assert trace.format == "msr"
    table = pa.table(trace)
    assert table.num_rows == 200 and table.schema.field("at_ns").type == pa.uint64()
    assert table["operation"].to_pylist()[:5] == ["write", "read", "read", "read", "write"]
    assert table["offset_bytes"].to_pylist() == [n % 50 * 4096 for n in range(200)]
    assert table["latency_ns"].to_pylist() == [133_100] * 200
    assert table["process"].null_count == 200
    info = trace.info()
    assert (info.summary.reads, info.summary.writes) == (150, 50)


def test_a_bad_line_is_an_error_of_the_reader(requests: str) -> None:
    with open(requests, "a") as file:
        file.write("nonsense\n")
    try:
        pa.table(flashwise.trace.open(requests))
    except OSError as error:
        assert "line 201" in str(error)
    else:
        raise AssertionError("the line was read")
    assert pa.table(flashwise.trace.open(requests, skip_bad_lines=1)).num_rows == 200
