"""Exceptions. Their words are those of the program."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, where, and what to do. All other exceptions of flashwise are of this class, too."""


class UsageError(Error, ValueError):
    """The arguments make no sense."""


class RefusedError(Error):
    """flashwise refuses, because data could be lost."""
