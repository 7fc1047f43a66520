"""Simulated drives and arrays: presets, files, random ones.

>>> from flashwise import device
>>> drive = device.preset("samsung-960-evo", **{"ftl.gc.policy": "fifo"})
>>> drive.config["ftl"]["gc"]["policy"]
'fifo'
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _native
from ._inputs import StrPath, is_file, read_text, to_toml

__all__ = ["Device", "load", "preset", "presets", "random"]


class Device:
    """A simulated drive or array, checked. It cannot be changed; :meth:`replace` gives another one.

    Args:
        config: what a device file has, as a mapping, such as :attr:`config` of another drive.
    """

    __slots__ = ("_document", "_path", "_text")
    _text: str
    _path: str
    _document: dict[str, Any]

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._set(to_toml(config), "device")

    def _set(self, text: str, path: str) -> None:
        object.__setattr__(self, "_document", json.loads(_native.describe(text, path)))
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_path", path)

    @classmethod
    def from_toml(cls, text: str, path: StrPath = "device") -> Device:
        """A drive or an array from the text of its file.

        Args:
            text: the text, see ``docs/formats/device.md`` and ``array.md``.
            path: for messages; the member of an array is looked for beside it.
        """
        made = cls.__new__(cls)
        made._set(text, os.fspath(path))
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Device cannot be changed; replace(**{{'{name}': …}}) gives another one")

    @property
    def name(self) -> str:
        """Its name in reports."""
        name: str = self._document["name"]
        return name

    @property
    def capacity_bytes(self) -> int:
        """Bytes that a host can address."""
        capacity: int = self._document["capacity_bytes"]
        return capacity

    @property
    def over_provisioning(self) -> float:
        """Flash that is not addressable ÷ addressable bytes; of an array, of each member."""
        share: float = self._document["over_provisioning"]
        return share

    @property
    def superpage_bytes(self) -> int:
        """Bytes that are programmed at once; of an array, by each member."""
        size: int = self._document["superpage_bytes"]
        return size

    @property
    def is_array(self) -> bool:
        """Whether it is an array of drives."""
        return self._document["array"] is not None

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the drive, or of the array without its members."""
        document = self._document["array"] or self._document["device"]
        config: dict[str, Any] = json.loads(json.dumps(document))
        return config

    @property
    def member(self) -> Device | None:
        """The drive that each member of an array is; `None` for a single drive."""
        return Device(self._document["device"]) if self.is_array else None

    def to_toml(self) -> str:
        """The device file, for the program and :func:`load`."""
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """The same as :attr:`config`."""
        return self.config

    def replace(self, **values: Any) -> Device:
        """The same drive with other values, by key paths.

        >>> small = device.preset("samsung-960-evo").replace(**{"flash.channels": 4})  # doctest: +SKIP
        """
        return Device.from_toml(_native.changed(self._text, self._path, json.dumps(values)), self._path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self._document == other._document

    def __hash__(self) -> int:
        return hash(json.dumps(self._document, sort_keys=True))

    def __repr__(self) -> str:
        size = self.capacity_bytes / 2**30
        if self.is_array:
            return f"<array {self.name}: {size:,.1f} GiB, {self._document['array']['level']}>"
        return f"<drive {self.name}: {size:,.1f} GiB, {100 * self.over_provisioning:.0f} % over-provisioning>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _device, (self._text, self._path)


def _device(text: str, path: str) -> Device:
    return Device.from_toml(text, path)


def presets() -> dict[str, str]:
    """Names of the presets, each with a line about the drive."""
    return dict(_native.presets())


def preset(name: str, **values: Any) -> Device:
    """A drive that comes with flashwise.

    Args:
        name: one of :func:`presets`.
        values: values to replace, by key paths such as ``**{"flash.channels": 4}``.

    Raises:
        UsageError: if there is none of this name.
    """
    found = Device.from_toml(_native.preset(name), name)
    return found.replace(**values) if values else found


def load(path: StrPath) -> Device:
    """A drive or an array from its TOML file."""
    return Device.from_toml(read_text(path), path)


def random(seed: int) -> Device:
    """A random drive, the same for the same seed: what the learner is tested on."""
    return Device.from_toml(_native.random(seed), f"random-{seed}")


def resolve(drive: Device | Mapping[str, Any] | StrPath) -> Device:
    """A drive in any of its forms: a Device, a mapping, the path of a TOML file, or the name of a preset."""
    if isinstance(drive, Device):
        return drive
    if isinstance(drive, Mapping):
        return Device(drive)
    name = os.fspath(drive)
    plain = name[len("sim:") :] if name.startswith("sim:") else name
    return load(plain) if is_file(plain) else preset(plain)
