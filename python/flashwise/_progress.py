"""Progress of long calls, by tqdm if it is installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[str, float], None]
"""Called as ``listener(stage, fraction)``, a few times a second; fraction is from 0 to 1."""

DELAY_S = 1.0
"""A call that is over sooner shows no bar, seconds."""


@contextmanager
def shown(progress: bool | Listener | None) -> Iterator[Listener | None]:
    """The listener of a call.

    Args:
        progress: `None` for a bar if tqdm is installed and the call takes more than a second, `True` or `False` for or
            against a bar, or a listener.
    """
    if progress is False:
        yield None
        return
    if callable(progress):
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    started = time.monotonic()
    bar: Any = None
    last: tuple[str, float] | None = None

    def advance(stage: str, fraction: float) -> None:
        nonlocal bar, last
        if (stage, fraction) == last:
            return
        if bar is None:
            if not progress and time.monotonic() - started < DELAY_S:
                return
            bar = tqdm(total=1.0, leave=False, bar_format="{l_bar}{bar}| {elapsed}<{remaining}")
        last = (stage, fraction)
        bar.set_description_str(stage, refresh=False)
        bar.n = min(max(fraction, 0.0), 1.0)
        bar.refresh()

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()
