"""What all results have in common."""

from __future__ import annotations

import dataclasses
import html
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from . import _native

R = TypeVar("R", bound="Record")


_known: dict[type, list[tuple[str, str, Any]]] = {}


def _fields(cls: type[Record]) -> list[tuple[str, str, Any]]:
    """Attribute, name in the document and type of each field of a class."""
    fields = _known.get(cls)
    if fields is None:
        hints, names = typing.get_type_hints(cls), cls._names
        fields = [(field.name, names.get(field.name, field.name), hints[field.name]) for field in dataclasses.fields(cls)]
        _known[cls] = fields
    return fields


def _value(hint: Any, value: Any) -> Any:
    """A value of the document as the type of its field."""
    if value is None:
        return None
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _value(_part(typing.get_args(hint), value), value)
    if origin is tuple:
        return tuple(_value(typing.get_args(hint)[0], item) for item in value)
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint._of(value)
    return value


def _part(hints: tuple[Any, ...], value: Any) -> Any:
    """Which of several types a value is of: the first class that has all its keys, the first type otherwise."""
    hints = tuple(hint for hint in hints if hint is not type(None))
    if isinstance(value, Mapping):
        for hint in hints:
            if isinstance(hint, type) and issubclass(hint, Record) and value.keys() <= {name for _, name, _ in _fields(hint)}:
                return hint
    return hints[0]


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """A part of a result. It cannot be changed."""

    _names: ClassVar[dict[str, str]] = {}
    """Attributes that have another name in the document."""

    @classmethod
    def _of(cls: type[R], document: Mapping[str, Any]) -> R:
        values = {
            attribute: _value(hint, document[name])
            for attribute, name, hint in _fields(cls)
            if name in document
        }
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """This part of the document, as ``json.loads`` would give it."""
        return {name: _plain(getattr(self, attribute)) for attribute, name, _ in _fields(type(self))}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Result(Record):
    """A result: one document of flashwise's.

    ``repr()`` is the text that the program prints. Notebooks show the page that the program writes with ``--html``.
    """

    @classmethod
    def _from(cls: type[R], document: _native.Document) -> R:
        result = cls._of(json.loads(document.json()))
        object.__setattr__(result, "_document", document)
        return result

    @property
    def _native(self) -> _native.Document:
        document: _native.Document = object.__getattribute__(self, "_document")
        return document

    def to_dict(self) -> dict[str, Any]:
        """The document that the program prints with ``-o json``."""
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    def to_html(self) -> str | None:
        """The page that the program writes with ``--html``, in one file without scripts; `None` if there is none."""
        return self._native.page()

    def __repr__(self) -> str:
        return self._native.text().rstrip()

    def _repr_html_(self) -> str | None:
        page = self.to_html()
        if page is None:
            return None
        style = "width: 100%; height: 640px; border: 0"
        return f'<iframe srcdoc="{html.escape(page)}" style="{style}" sandbox></iframe>'

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._native.json(), self._native.text(), self.to_html())


class Tabular:
    """Rows that other libraries read in place: pandas, polars, pyarrow and DuckDB take the object itself.

    >>> polars.DataFrame(result)            # doctest: +SKIP
    >>> pyarrow.table(result).to_pandas()   # doctest: +SKIP
    """

    _rows: ClassVar[str]
    """The list of the document that is the table."""

    def _columns(self) -> _native.Columns:
        cached: _native.Columns | None = self.__dict__.get("_cached_columns")
        if cached is None:
            document: _native.Document = object.__getattribute__(self, "_document")
            cached = document.columns(self._rows)
            object.__setattr__(self, "_cached_columns", cached)
        return cached

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows in Arrow's PyCapsule interface, without a copy."""
        return self._columns().__arrow_c_stream__(requested_schema)


def _restored(cls: type[Result], document: str, text: str, page: str | None) -> Result:
    return cls._from(_native.restore(document, text, page))
