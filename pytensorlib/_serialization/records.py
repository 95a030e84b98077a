"""Reads and writes single records of zip files, as `PyTorchFileReader` and its like do."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytensorlib as pt

from .. import _C
from .archive import ArchiveReader, ArchiveWriter

__all__ = [
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "_open_file_like",
    "_open_zipfile_reader",
    "_open_zipfile_writer",
]

MAX_RECORD = 1 << 62


def _bytes_of(data: Any, size: int) -> Any:
    """Return the first bytes of what a record may be given as."""
    if isinstance(data, str):
        data = data.encode()
    elif isinstance(data, int):
        import ctypes

        data = ctypes.string_at(data, size)
    elif isinstance(data, _C.UntypedStorage):
        flat: Any = data
        data = _C._host_bytes(flat._as_bytes().cpu())
    return memoryview(data).cast("B")[:size]


class PyTorchFileReader:
    """The records of a file.

    Parameters
    ----------
    name_or_buffer : path or file
        What `save`, or PyTorch, wrote; a file must be seekable.

    Examples
    --------
    >>> import io
    >>> import pytensorlib as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.ones(2), file)
    >>> "data/0" in torch._C.PyTorchFileReader(file).get_all_records()
    True
    """

    def __init__(self, name_or_buffer: Any) -> None:
        own = isinstance(name_or_buffer, (str, os.PathLike))
        self._file = open(name_or_buffer, "rb") if own else name_or_buffer  # noqa: SIM115
        self._opened = own
        self._archive = ArchiveReader(self._file)

    def _close(self) -> None:
        if self._opened:
            self._file.close()

    def has_record(self, name: str) -> bool:
        return name in self._archive.records

    def get_all_records(self) -> list[str]:
        return list(self._archive.records)

    def get_record(self, name: str) -> bytes:
        return bytes(self._archive.read(name, MAX_RECORD))

    def get_record_size(self, name: str) -> int:
        return self._archive.find(name).size

    def get_record_offset(self, name: str) -> int:
        return self._archive.base + self._archive.start_of(self._archive.find(name))

    def get_record_header_offset(self, name: str) -> int:
        return self._archive.base + self._archive.find(name).offset

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        bytes_ = self._archive.tensor(self._archive.find(name))
        kind = dtype if isinstance(dtype, pt.dtype) else pt.uint8
        return bytes_[: numel * kind.itemsize].view(kind)

    def serialization_id(self) -> str:
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes the records of a file.

    Parameters
    ----------
    name_or_buffer : path or file
        A file only needs ``write``.
    compute_crc32 : bool, default True
        Whether records have checksums.
    storage_alignment : int
        Accepted as PyTorch does; records begin at multiples of 64 bytes.

    Examples
    --------
    >>> import io
    >>> import pytensorlib as torch
    >>> file = io.BytesIO()
    >>> writer = torch._C.PyTorchFileWriter(file)
    >>> writer.write_record("name", b"value", 5)
    >>> writer.write_end_of_file()
    >>> torch._C.PyTorchFileReader(file).get_record("name")
    b'value'
    """

    def __init__(
        self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int = 64
    ) -> None:
        own = isinstance(name_or_buffer, (str, os.PathLike))
        top = os.path.splitext(os.path.basename(name_or_buffer))[0] if own else ""
        self._file = open(name_or_buffer, "wb") if own else name_or_buffer  # noqa: SIM115
        self._opened, self._ended = own, False
        self._archive = ArchiveWriter(self._file, top or "archive", compute_crc32)
        self._written: list[str] = []

    def archive_name(self) -> str:
        return self._archive.top

    def set_min_version(self, version: int) -> None:
        """Do nothing: files have the version that `save` writes."""

    def write_record(self, name: str, data: Any, size: int) -> None:
        self._archive.record(name, _bytes_of(data, size))
        self._written.append(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Write a record that is filled later."""
        self.write_record(name, bytes(size), size)

    def get_all_written_records(self) -> set[str]:
        return set(self._written)

    def serialization_id(self) -> str:
        return self._archive.serialization_id()

    def write_end_of_file(self) -> None:
        if self._ended:
            return
        self._ended = True
        for name, data in (("version", b"3\n"), ("byteorder", sys.byteorder.encode())):
            if name not in self._written:
                self.write_record(name, data, len(data))
        name, data = ".data/serialization_id", self.serialization_id().encode()
        self.write_record(name, data, len(data))
        self._archive.close()
        if self._opened:
            self._file.close()
        elif hasattr(self._file, "flush"):
            self._file.flush()


class _Opened:
    """Something to enter, and what entering it gives."""

    def __init__(self, file_like: Any) -> None:
        self.file_like = file_like

    def __enter__(self) -> Any:
        return self.file_like

    def __exit__(self, *args: Any) -> None:
        pass


class _open_file(_Opened):
    def __init__(self, name: Any, mode: str) -> None:
        super().__init__(open(name, mode))  # noqa: SIM115

    def __exit__(self, *args: Any) -> None:
        self.file_like.close()


class _open_buffer_writer(_Opened):
    def __exit__(self, *args: Any) -> None:
        self.file_like.flush()


def _open_file_like(name_or_buffer: Any, mode: str) -> _Opened:
    """Open a path, or take an open file."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        return _open_file(name_or_buffer, mode)
    if "w" in mode:
        return _open_buffer_writer(name_or_buffer)
    if "r" not in mode:
        raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
    return _Opened(name_or_buffer)


class _open_zipfile_reader(_Opened):
    def __init__(self, name_or_buffer: Any) -> None:
        super().__init__(PyTorchFileReader(name_or_buffer))

    def __exit__(self, *args: Any) -> None:
        self.file_like._close()


class _open_zipfile_writer(_Opened):
    def __init__(self, name_or_buffer: Any) -> None:
        super().__init__(PyTorchFileWriter(name_or_buffer))

    def __exit__(self, *args: Any) -> None:
        self.file_like.write_end_of_file()
