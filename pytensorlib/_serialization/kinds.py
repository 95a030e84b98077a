"""Recognises the format of a file, for the questions of `torch.serialization`."""

from __future__ import annotations

import io
import os
from typing import Any

__all__ = [
    "_is_path",
    "_is_zipfile",
    "_is_compressed_file",
    "_should_read_directly",
    "_check_seekable",
    "_maybe_decode_ascii",
]


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    """Return the text that bytes of ASCII are; text stays."""
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str


def _is_path(name_or_buffer: Any) -> bool:
    """Return whether this is the path of a file."""
    return isinstance(name_or_buffer, (str, os.PathLike))


def _is_zipfile(f: Any) -> bool:
    """Return whether a file goes on as a zip archive does; its place stays."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def _is_compressed_file(f: Any) -> bool:
    """Return whether a file unpacks what it reads."""
    return getattr(f, "__module__", None) == "gzip"


def _should_read_directly(f: Any) -> bool:
    """Return whether a file is one of the system's, that may be read without Python."""
    if _is_compressed_file(f):
        return False
    try:
        return f.fileno() >= 0
    except (io.UnsupportedOperation, AttributeError):
        return False


def _check_seekable(f: Any) -> bool:
    """Refuse a file whose place cannot be set."""
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        text = str(error)
        if any(name in text for name in ("seek", "tell")):
            text += (
                ". You can only torch.load from a file that is seekable. Please pre-load the data "
                "into a buffer like io.BytesIO and try to load from it instead."
            )
        raise type(error)(text) from error
    return True
