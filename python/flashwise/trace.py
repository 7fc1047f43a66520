"""Traces of any format that flashwise reads.

>>> from flashwise import trace
>>> requests = trace.open("app.csv")     # doctest: +SKIP
>>> requests.info().summary.reads        # doctest: +SKIP
>>> polars.DataFrame(requests)           # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from typing import Any

from . import _native
from ._inputs import Bytes, StrPath
from .results import TraceInfo

__all__ = ["Trace", "open"]


class Trace:
    """A trace: a file and how it is read. It is read anew each time it is used.

    pandas, polars, pyarrow and DuckDB take the object itself, as a table with a row for each request: ``at_ns`` on the
    trace's clock, ``operation``, ``offset_bytes``, ``length_bytes``, ``role``, ``latency_ns``, ``device``, ``process``,
    ``fua``, ``content``. What the format does not have is null.
    """

    __slots__ = ("_reading", "format", "format_reason")
    format: str
    """The format's name, as in ``flashwise trace --help``."""
    format_reason: str
    """Why it was read in this format."""

    def __init__(self, reading: dict[str, Any]) -> None:
        self._reading = json.dumps(reading)
        self.format, self.format_reason = _native.trace_format(self._reading)

    @property
    def path(self) -> str:
        """The file."""
        path: str = json.loads(self._reading)["path"]
        return path

    def info(self) -> TraceInfo:
        """Reads the trace once: requests, bytes, addresses, lengths, times."""
        return TraceInfo._from(_native.trace_info(self._reading))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The requests in Arrow's PyCapsule interface, read while they are consumed."""
        return _native.trace_stream(self._reading)

    def __repr__(self) -> str:
        return f"<trace {self.path}: {self.format}, {self.format_reason}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Trace, (json.loads(self._reading),)


def open(
    path: StrPath,
    format: str = "auto",
    *,
    skip_bad_lines: int = 0,
    sector_size: Bytes = 512,
    page_size: Bytes = 4096,
) -> Trace:
    """Opens a trace.

    Args:
        path: the file, compressed or not.
        format: its format; ``"auto"`` detects it by the first bytes and the name. ``"columns:LAYOUT"`` reads any text in
            columns, such as ``"columns:time=1:s,op=2,offset=3:bytes,length=4:bytes"``.
        skip_bad_lines: lines that may be malformed; they are skipped.
        sector_size: bytes of a sector, for formats that count sectors.
        page_size: bytes of a page, for formats that count pages, and of a pool's page.

    Raises:
        Error: if it cannot be opened, or its format cannot be detected.
    """
    return Trace(reading(path, format, skip_bad_lines, sector_size, page_size))


def reading(
    path: StrPath,
    format: str = "auto",
    skip_bad_lines: int = 0,
    sector_size: Bytes = 512,
    page_size: Bytes = 4096,
) -> dict[str, Any]:
    """A trace as the compiled half takes it."""
    return {
        "path": os.fspath(path),
        "format": format,
        "skip_bad_lines": skip_bad_lines,
        "sector_size": sector_size,
        "page_size": page_size,
    }


def resolve(trace: Trace | StrPath) -> dict[str, Any]:
    """A trace that is open, or the path of one."""
    if isinstance(trace, Trace):
        opened: dict[str, Any] = json.loads(trace._reading)
        return opened
    return reading(trace)
