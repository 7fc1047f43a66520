"""Progress of long calls: a line in the output of a notebook's cell, otherwise by tqdm if it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Listener = Callable[[str, float], None]
"""Called as ``listener(stage, fraction)``, a few times a second; fraction is from 0 to 1."""

DELAY_S = 1.0
"""A call that is over sooner shows no bar, seconds."""


class _Bar(Protocol):
    """What shows how far a call is."""

    def show(self, stage: str, fraction: float) -> None: ...

    def close(self) -> None: ...


class _TqdmBar:
    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(total=1.0, leave=False, bar_format="{l_bar}{bar}| {elapsed}<{remaining}")

    def show(self, stage: str, fraction: float) -> None:
        self._bar.set_description_str(stage, refresh=False)
        self._bar.n = fraction
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class _CellBar:
    """One line that is replaced, and empty at the end: without widgets tqdm would add a line a stage, and a warning."""

    def __init__(self, display: Any) -> None:
        self._line = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, stage: str, fraction: float) -> None:
        self._line.update({"text/plain": f"{stage}: {fraction:.0%}"}, raw=True)

    def close(self) -> None:
        self._line.update({"text/plain": ""}, raw=True)


def _bars() -> Callable[[], _Bar] | None:
    """What makes a bar here; `None` if nothing can."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None and importlib.util.find_spec("ipywidgets") is None:
        display = importlib.import_module("IPython.display").display
        return lambda: _CellBar(display)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return lambda: _TqdmBar(tqdm)


@contextmanager
def shown(progress: bool | Listener | None) -> Iterator[Listener | None]:
    """The listener of a call.

    Args:
        progress: `None` for a bar, in a notebook or if tqdm is installed, once the call takes more than a second; `True`
            or `False` for or against a bar; or a listener.
    """
    if progress is False:
        yield None
        return
    if callable(progress):
        yield progress
        return
    new_bar = _bars()
    if new_bar is None:
        yield None
        return
    started = time.monotonic()
    bar: _Bar | None = None
    last: tuple[str, float] | None = None

    def advance(stage: str, fraction: float) -> None:
        nonlocal bar, last
        if (stage, fraction) == last:
            return
        if bar is None:
            if not progress and time.monotonic() - started < DELAY_S:
                return
            bar = new_bar()
        last = (stage, fraction)
        bar.show(stage, min(max(fraction, 0.0), 1.0))

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()
