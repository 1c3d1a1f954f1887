"""Baselines: files of findings that are known, so that only new ones are reported.

A baseline is JSON: `{"schema": 1, "findings": [{"fingerprint": …, "code": …, "file": …, "text": …}]}`. A fingerprint is
made of the code, the file, the source text and the operands' names, so that a finding stays known when lines above it
are added or removed.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from ._simulcast import _Baseline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._simulcast import _FindingDict


def read(path: str | os.PathLike[str]) -> _Baseline:
    """The baseline in a file; a `ValueError` with the file's name says why it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return _Baseline(file.read())
    except UnicodeDecodeError:
        raise ValueError(f"{os.fspath(path)}: not a baseline of findings: it is no text") from None
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def write(path: str | os.PathLike[str], findings: Sequence[_FindingDict]) -> None:
    """Writes findings as a baseline. The file is whole under its name or not there."""
    text = _Baseline.text_of(findings)
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a device is written to as it is.
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".simulcast-", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
