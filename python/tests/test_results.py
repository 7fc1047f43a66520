"""Results are the program's documents."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import flashwise
import pyarrow as pa
import pytest
from conftest import Program
from flashwise._base import Record, Result

ARGUMENTS = ["machado-4g", "--rw", "randrw", "--iodepth", "8", "--requests", "2000", "--precondition", "steady"]


def run() -> flashwise.Simulation:
    return flashwise.simulate("machado-4g", rw="randrw", iodepth=8, requests=2000, precondition="steady")


def test_a_simulation_is_the_program_s_document_to_the_bit(document: Callable[..., dict[str, Any]]) -> None:
    theirs, ours = document("simulate", *ARGUMENTS), run().to_dict()
    assert theirs.pop("process") and ours.pop("process")
    assert ours == theirs


def test_its_repr_is_what_the_program_prints(program: Program) -> None:
    lines = [line for line in program("simulate", *ARGUMENTS).stdout.splitlines() if "wall-clock" not in line]
    ours = [line for line in repr(run()).splitlines() if "wall-clock" not in line]
    assert ours[:20] == lines[:20] and len(ours) > 20


def test_values_have_types_and_cannot_be_changed() -> None:
    result = run()
    assert result.total.requests == 2000 and result.flows[0].requests == 2000
    assert isinstance(result.flows[0], flashwise.results.FlowResult)
    assert result.total.percentiles_ns is not None
    assert result.total.percentiles_ns.p50 <= result.total.percentiles_ns.p99_9
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.seed = 7  # type: ignore[misc]


def missing(record: Record, document: dict[str, Any], path: str = "") -> list[str]:
    """Keys of a document that the class of its object lacks."""
    names = {record._names.get(field.name, field.name): field.name for field in dataclasses.fields(record)}
    lacking = [f"{path}{key}" for key in document if key not in names]
    for key, value in document.items():
        held = getattr(record, names.get(key, ""), None)
        pairs = list(zip(held, value)) if isinstance(held, tuple) else [(held, value)]
        for part, plain in pairs:
            if isinstance(part, Record):
                lacking += missing(part, plain, f"{path}{key}.")
    return lacking


def test_no_key_of_a_document_is_without_an_attribute(profile: flashwise.Profile, requests: str) -> None:
    results: list[Result] = [
        run(),
        flashwise.pool(requests, "lru,arc", frames=8, compare=True, alpha=2.0, kr=8, kw=4, drive="machado-4g"),
        flashwise.audit(requests, profile),
        flashwise.trace.open(requests).info(),
        profile,
    ]
    for result in results:
        assert missing(result, result.to_dict()) == [], type(result)
        assert result.to_dict()["schema"].startswith("flashwise.")


def test_a_result_travels_to_another_process_whole(profile: flashwise.Profile, requests: str) -> None:
    for result in (run(), flashwise.pool(requests, frames=8), flashwise.audit(requests, profile), profile):
        copy = pickle.loads(pickle.dumps(result))
        assert copy == result and copy.to_dict() == result.to_dict() and repr(copy) == repr(result)
        assert copy.to_html() == result.to_html()


def test_a_study_has_a_type_for_each_part_of_its_document() -> None:
    study = flashwise.study("gc-organisation", quick=True)
    assert missing(study, study.to_dict()) == [] and study.to_dict()["schema"] == "flashwise.study"
    cell = study.sections[0].tables[0].rows[0][1]
    assert isinstance(cell, flashwise.results.Measured) and cell.low <= cell.value <= cell.high
    assert study.name in flashwise.studies() and study.claims[0].verdict in ("reproduced", "partly", "not-reproduced")
    copy = pickle.loads(pickle.dumps(study))
    assert copy == study and repr(copy) == repr(study) and copy.to_html() == study.to_html()
    assert pa.table(study).column("claim").to_pylist() == [claim.claim for claim in study.claims]


def test_notebooks_show_the_page_in_a_frame_of_its_own(profile: flashwise.Profile, requests: str) -> None:
    for result in (run(), flashwise.pool(requests, frames=[4, 8]), flashwise.audit(requests, profile), profile):
        shown = result._repr_html_()
        assert shown is not None and shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert "&lt;svg" in shown and "<script" not in shown
    assert flashwise.trace.open(requests).info()._repr_html_() is None


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["simulate", "samsung", "ycsb-a"], lambda: flashwise.simulate("samsung", "ycsb-a")),
        (["simulate", "none.toml", "ycsb-a"], lambda: flashwise.simulate("none.toml", "ycsb-a")),
        (["simulate", "micron-m500", "none.csv"], lambda: flashwise.simulate("micron-m500", "none.csv")),
        (["simulate", "micron-m500", "--rw", "read"], lambda: flashwise.simulate("micron-m500", rw="read")),
        (["study", "gc"], lambda: flashwise.study("gc")),
        (["learn", "/no/such/place"], lambda: flashwise.learn("/no/such/place")),
        (["learn", "/proc/version"], lambda: flashwise.learn("/proc/version")),
    ],
)
def test_errors_have_the_program_s_words(program: Program, arguments: list[str], call: Callable[[], object]) -> None:
    done = program(*arguments)
    with pytest.raises(flashwise.Error) as raised:
        call()
    assert f"flashwise: {raised.value}\n" == done.stderr
    kinds = {1: flashwise.Error, 2: flashwise.UsageError, 5: flashwise.RefusedError}
    assert type(raised.value) is kinds[done.returncode]
