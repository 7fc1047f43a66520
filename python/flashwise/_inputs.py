"""Arguments as the compiled half takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

from . import _native
from ._errors import Error, UsageError
from .results import Profile

StrPath = Union[str, "os.PathLike[str]"]
"""A path."""
Bytes = Union[int, str]
"""A size: bytes, or a text such as ``"64k"`` or ``"4KiB"`` (both powers of two)."""
Time = Union[int, str]
"""A time: nanoseconds, or a text such as ``"10ms"``, ``"30s"`` or ``"20us"``."""


def is_file(name: str) -> bool:
    """Whether a name of a drive is that of a file, as on the command line."""
    return name.endswith(".toml") or "/" in name


def read_text(path: StrPath) -> str:
    """A file of ours, with the program's words if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Error(f"{os.fspath(path)}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise Error(f"{os.fspath(path)}: is not UTF-8 text") from None


def profile_text(profile: Profile | StrPath) -> dict[str, str]:
    """A profile's text, and the path for messages."""
    if isinstance(profile, Profile):
        return {"text": profile.to_toml(), "path": "profile"}
    return {"text": read_text(profile), "path": os.fspath(profile)}


def several(value: Any) -> list[Any]:
    """One value or a sequence of them, as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset, range)) else [value]


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def to_toml(document: Mapping[str, Any]) -> str:
    """A mapping as a TOML file."""
    import json

    try:
        text = json.dumps(document)
    except (TypeError, ValueError) as error:
        raise UsageError(f"not a configuration: {error}") from None
    return _native.to_toml(text)
