"""flashwise's VFS in Python's own ``sqlite3``.

>>> import sqlite3
>>> from flashwise import sqlite
>>> sqlite.load()                                                             # doctest: +SKIP
>>> db = sqlite3.connect("file:app.db?vfs=flashwise&profile=drive.toml", uri=True)  # doctest: +SKIP
"""

from __future__ import annotations

import os
import sqlite3

from ._errors import Error

__all__ = ["extension_path", "load"]


def extension_path() -> str:
    """The path of the loadable extension, for ``load_extension`` of any program's SQLite.

    Raises:
        Error: if this installation lacks it.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libflashwise_sqlite.so")
    if not os.path.exists(path):
        raise Error(f"{path}: no such file; install the package again")
    return path


def load() -> None:
    """Registers the VFS ``flashwise`` in this process, for every connection that names it afterwards.

    Raises:
        Error: if this Python's ``sqlite3`` cannot load extensions.
    """
    connection = sqlite3.connect(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(extension_path())
    except (AttributeError, sqlite3.Error) as error:
        raise Error(f"this Python's sqlite3 cannot load extensions: {error}") from None
    finally:
        connection.close()
