"""Saving and loading in PyTorch's file formats.

`save` writes the zip format; `load` reads zip and legacy files, through a pickle machine of our
own unless ``weights_only=False``. Nothing in a file is believed before it has been checked.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import IO, Any

import pytensorlib as pt

from . import _C, _alias, _utils
from ._serialization import kinds as _kinds
from ._serialization import machine as _machine
from ._serialization import options as _options
from ._serialization import records as _records
from ._serialization.allowed import (
    StorageKind,
    add_safe_globals,
    build_allowed,
    clear_safe_globals,
    find_allowed,
    full_name,
    get_safe_globals,
    is_allowed,
    safe_globals,
)
from ._serialization.archive import LOCAL, ArchiveReader, ArchiveWriter, Record, read_all, write_all
from ._serialization.atomic import open_whole, write_whole
from ._serialization.machine import CorruptCheckpointError, TruncatedCheckpointError
from ._serialization.options import *  # noqa: F403
from ._serialization.pickler import SavedStorage, location_of, pickler_of
from ._serialization.storages import LIMIT, FileStorage, brief
from ._serialization.unpickler import Reading
from ._system import MAP_SHARED

__all__ = [
    "CorruptCheckpointError",
    "TruncatedCheckpointError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_crc32_options",
]
__all__ += _options.__all__
_alias.adopt(globals(), _options.__all__)

_is_path, _is_zipfile, _is_compressed_file, _should_read_directly = (
    getattr(_kinds, name) for name in _kinds.__all__[:4]
)
_check_seekable, _maybe_decode_ascii = (getattr(_kinds, name) for name in _kinds.__all__[4:])
_open_file_like, _open_zipfile_reader, _open_zipfile_writer = (
    getattr(_records, name) for name in _records.__all__[2:]
)

# What tells where the tensors of a file go.
MAP_LOCATION = Callable[[Any, str], Any] | pt.device | str | dict[str, str] | None

DEFAULT_PROTOCOL = 2  # of pickles
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
LEGACY_START = b"\x80\x02\x8a\x0a" + MAGIC_NUMBER.to_bytes(10, "little")
PROTOCOL_VERSION = 1001
MAX_VERSION = 10
# Places in a pickle have 32 bits. The pickle of 100,000 tensors takes about 20 MB.
MAX_PICKLE = (1 << 32) - 1

_checksums = True


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes the records' checksums (default True).

    Parameters
    ----------
    compute_crc32 : bool
        False is quicker, but `load` then cannot notice damage.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.set_crc32_options(False)
    >>> torch.serialization.get_crc32_options()
    False
    >>> torch.serialization.set_crc32_options(True)
    """
    global _checksums
    _checksums = compute_crc32


def get_crc32_options() -> bool:
    """Return whether `save` computes the records' checksums.

    Returns
    -------
    bool
        As `set_crc32_options` left it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.get_crc32_options()
    True
    """
    return _checksums


# ------------------------------------------------------------------------- saving


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that PyTorch reads too.

    A file given by its path appears whole or not at all: a failure leaves the old one as it was.
    Tensors that share memory share it in the file.

    Parameters
    ----------
    obj : object
        Anything that can be pickled; as a rule a dict of tensors.
    f : path or file
        A file only needs ``write``.
    pickle_module : module, optional
        Its ``Pickler`` says how functions and classes are written, as those of dill and
        cloudpickle do.
    pickle_protocol : int, default 2
        `load` with ``weights_only=True`` reads protocol 2 only.

    Raises
    ------
    RuntimeError
        If the file cannot be written.
    pickle.PicklingError
        If `obj` holds something that cannot be pickled.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'weight': tensor([1., 1.])}
    """
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    if path is None and not hasattr(f, "write"):
        raise AttributeError(f"save: expected 'f' to be a path or have write, got {type(f)}")
    buffer, kind = io.BytesIO(), pickler_of(pickle_module)
    pickler = kind(buffer, pickle_protocol, not _use_new_zipfile_serialization)
    pickler.dump(obj)
    storages = list(pickler.storages.values())

    def write(stream: IO[bytes]) -> None:
        if not _use_new_zipfile_serialization:
            _write_legacy(stream, buffer.getvalue(), storages, pickle_protocol)
            return
        top = "archive" if path is None else os.path.splitext(os.path.basename(path))[0]
        archive = ArchiveWriter(stream, top or "archive", _checksums)
        archive.record("data.pkl", buffer.getvalue())
        archive.record(".format_version", b"1")
        archive.record(".storage_alignment", b"64")
        if not _disable_byteorder_record:
            archive.record("byteorder", sys.byteorder.encode())
        for saved in storages:
            archive.record(f"data/{saved.key}", saved.bytes())
        archive.record("version", b"3\n")
        archive.record(".data/serialization_id", archive.serialization_id().encode())
        archive.close()

    if path is None:
        write(f)
        if hasattr(f, "flush"):
            f.flush()  # who reads it by its name finds it whole
        return
    parent = os.path.dirname(path) or "."
    if not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    try:
        write_whole(os.path.realpath(path), write)
    except OSError as e:
        # Windows says of a directory only that access is denied.
        why = "it is a directory" if os.path.isdir(path) else str(e)
        raise RuntimeError(f"save: cannot write {path}: {why}") from e


def _write_legacy(
    stream: IO[bytes], data: bytes, storages: list[SavedStorage], protocol: int
) -> None:
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    keys = [saved.key for saved in storages]
    head = [pickle.dumps(part, protocol) for part in (MAGIC_NUMBER, PROTOCOL_VERSION, info)]
    for part in (*head, data, pickle.dumps(keys, protocol)):
        write_all(stream, memoryview(part))
    for saved in storages:
        write_all(stream, memoryview(struct.pack("<q", saved.numel)))
        write_all(stream, memoryview(saved.bytes()))


# ------------------------------------------------------------------------- loading


class _Storages:
    """The storages of a file by key, placed on their devices."""

    def __init__(self, fetch: Callable[..., Any], map_location: Any) -> None:
        self.fetch = fetch
        self.map_location = map_location
        self.by_key: dict[str, FileStorage] = {}

    def __call__(self, pid: Any) -> FileStorage:
        if not isinstance(pid, tuple) or len(pid) < 5:
            raise CorruptCheckpointError("saved_id must be a tuple of 5")
        # Of Python 2, with encoding="bytes".
        pid = tuple(p.decode("latin1") if isinstance(p, bytes) else p for p in pid)
        if pid[0] != "storage":
            raise CorruptCheckpointError(f"unknown type of saved data: {brief(pid[0])}")
        _, kind, key, location, numel = pid[:5]
        key = str(key)
        if not isinstance(kind, StorageKind) or type(numel) is not int or numel < 0:
            raise CorruptCheckpointError(
                f"storage {brief(key)}: impossible class {brief(kind)} or size {brief(numel)}"
            )
        if not isinstance(location, str):
            raise CorruptCheckpointError(f"storage {brief(key)}: its location is {brief(location)}")
        nbytes = numel * kind.dtype.itemsize
        known = self.by_key.get(key)
        if known is None:
            if nbytes >= LIMIT:
                raise CorruptCheckpointError(f"storage {brief(key)}: of {brief(numel)} elements")
            data = self.fetch(key, nbytes, kind.dtype)
            known = FileStorage(data, kind.dtype, _place(location, self.map_location, data))
            self.by_key[key] = known
        elif known._nbytes() != nbytes:
            raise CorruptCheckpointError(
                f"storage {brief(key)} is declared with {brief(nbytes)} and with "
                f"{known._nbytes()} bytes"
            )
        view = pid[5] if len(pid) > 5 else None
        if view is not None:
            return _part(known, view)
        if known.dtype == kind.dtype:
            return known
        # The same memory under another dtype.
        other = FileStorage(known.data, kind.dtype, known.place)
        other.typed = known.typed
        return other


def _part(whole: FileStorage, view: Any) -> FileStorage:
    """Return the slice of a storage that old legacy files describe."""
    if not isinstance(view, tuple) or len(view) != 3:
        raise CorruptCheckpointError(f"impossible view of a storage: {brief(view)}")
    _, offset, numel = view
    item = whole.dtype.itemsize
    if type(offset) is not int or type(numel) is not int or min(offset, numel) < 0:
        raise CorruptCheckpointError(f"impossible view of a storage: {brief(view)}")
    if (offset + numel) * item > whole._nbytes():
        raise CorruptCheckpointError(
            f"a view of {brief(numel)} at {brief(offset)} reaches beyond its storage"
        )
    data = whole.data[offset * item : (offset + numel) * item]
    return FileStorage(data, whole.dtype, whole.place)


def _place(location: str, map_location: Any, data: Any) -> Any:
    """Return the device for a storage saved at `location`."""
    if callable(map_location) and not isinstance(map_location, (str, pt.device)):
        result = map_location(data.untyped_storage(), location)
        if result is not None:
            return result.device
    elif isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif map_location is not None:
        location = location_of(pt.device(map_location))
    location = str(location)
    for first in (True, False):
        for _, _, _, deserializer in _options.asked(first):
            found = deserializer(data.untyped_storage(), location)
            if found is not None:
                return found.device
        device = _options.device_of(location) if first else None
        if device is not None:
            return device
    raise RuntimeError(
        "don't know how to restore data location of a storage (tagged with "
        f"{brief(location)}): use map_location='cpu'"
    )


def _swap(data: Any, item: int) -> None:
    if item > 1:
        data.numpy().view(f"u{item}").byteswap(inplace=True)


def _unit(dtype: Any) -> int:
    """Return the size of what is swapped between byte orders: half a complex number."""
    return dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save`, or PyTorch, wrote.

    Parameters
    ----------
    f : path or file
        A file must be seekable.
    map_location : device, str, dict or callable, optional
        Where the tensors go, instead of where they were.
    pickle_module : module, optional
        With ``weights_only=False``: its ``Unpickler`` reads the file, and finds the classes.
    weights_only : bool, default True
        Accept tensors and plain containers only. False runs whatever code the file asks for: use
        it for files that you trust. Where it is not given, ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1``
        in the environment means False, with a warning; ``TORCH_FORCE_WEIGHTS_ONLY_LOAD=1`` means
        True even where it is False.
    mmap : bool
        Map the file instead of reading it; checksums are then not checked. The file must not
        shrink while the tensors live.
    **pickle_load_args
        For the unpickler: ``encoding="latin1"`` or "bytes" reads strings of Python 2 otherwise
        than as UTF-8.

    Returns
    -------
    object
        What was saved.

    Raises
    ------
    pickle.UnpicklingError
        If the file needs something that ``weights_only`` does not allow.
    CorruptCheckpointError
        A RuntimeError: the file is damaged or is not a checkpoint.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.arange(3), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0, 1, 2])
    """
    weights_only = _options.wants_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("load: pickle_module cannot be given with weights_only=True")
    how = Reading(weights_only, pickle_module, pickle_load_args)
    if isinstance(f, (str, os.PathLike)):
        with open_whole(f) as stream:
            return _load(stream, map_location, how, os.fspath(f) if mmap else None)
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    _check_seekable(f)
    return _load(f, map_location, how, None)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Return the names in a file that ``load(weights_only=True)`` would refuse.

    Parameters
    ----------
    f : path or file
        What `save`, or PyTorch, wrote.

    Returns
    -------
    list of str
        Full names of classes and functions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> import io
    >>> from fractions import Fraction
    >>> file = io.BytesIO()
    >>> torch.save(Fraction(1, 2), file)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    ['fractions.Fraction']
    """
    if isinstance(f, (str, os.PathLike)):
        with open_whole(f) as stream:
            return get_unsafe_globals_in_checkpoint(stream)
    at = f.tell()
    if read_all(f, 4) == LOCAL:
        found, _ = _machine.globals_of(ArchiveReader(f, at).read("data.pkl", MAX_PICKLE))
    else:
        f.seek(at)
        data, end, found = _rest(f), 0, []
        if not data.startswith(LEGACY_START):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        for _ in range(4):  # the magic number, the version, the machine, the object
            found, end = _machine.globals_of(data, end)
    return [full_name(*name) for name in found if not is_allowed(*name)]


def _load(stream: Any, map_location: Any, how: Reading, mapped: Any) -> Any:
    with _utils.placed(map_location):
        return _load_any(stream, map_location, how, mapped)


def _load_any(stream: Any, map_location: Any, how: Reading, mapped: Any) -> Any:
    weights_only, at = how.weights_only, stream.tell()
    start = read_all(stream, 512)
    if not start:
        raise TruncatedCheckpointError("Ran out of input: the file is empty")
    try:
        if start.startswith(LOCAL):
            return _load_zip(ArchiveReader(stream, at), map_location, how, mapped)
        if start.startswith(LEGACY_START):
            if mapped is not None:
                raise RuntimeError(
                    "mmap can only be used with files saved in the zip format, got a legacy one"
                )
            stream.seek(at)
            result, end = _load_legacy(_rest(stream), map_location, how)
            # Another may follow.
            stream.seek(at + end)
            return result
    except UnpicklingError as e:
        if not weights_only:
            raise
        raise UnpicklingError(
            f"Weights only load failed: {e}. Files from a source that you trust can be loaded "
            "with `weights_only=False`, which runs the code they ask for."
        ) from None
    if start[257:262] == b"ustar":
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format."
            if weights_only
            else "load: files in the legacy .tar format are not supported; save them anew."
        )
    if start.startswith(b"\x80"):
        raise UnpicklingError(
            "Weights only load failed: this is a plain pickle, not a checkpoint: Invalid magic "
            "number; use pickle.load if you trust it (weights_only has no effect on it)"
        )
    raise CorruptCheckpointError(
        f"Invalid magic number; corrupt file? It starts with {start[:8]!r}, not with a zip archive"
    )


def _rest(stream: Any) -> bytes:
    """Return all bytes up to the end of a stream that may give fewer at a time."""
    parts = []
    while part := stream.read():
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _load_zip(archive: ArchiveReader, map_location: Any, how: Reading, mapped: Any) -> Any:
    if "constants.pkl" in archive.records and how.weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives, which are not supported"
        )
    data = archive.read("data.pkl", MAX_PICKLE)
    version = archive.read(
        ".data/version" if ".data/version" in archive.records else "version", 64
    ).strip()
    if not version.isdigit():
        raise CorruptCheckpointError(f"the version of the file is {version!r:.40}, not a number")
    if int(version) > MAX_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {int(version)}, but the maximum "
            f"supported version for reading is {MAX_VERSION}."
        )
    order = _options.default_order()
    if "byteorder" in archive.records:
        order = archive.read("byteorder", 16).decode("ascii", "replace")
        if order not in ("little", "big"):
            raise CorruptCheckpointError(f"Unknown endianness type: {order!r}")
    swap = order != sys.byteorder
    mode: Any = "r+" if _options.options.map_flags == MAP_SHARED else "c"
    memory: Any = None
    if mapped is not None:
        import numpy as np

        memory = np.memmap(mapped, mode=mode, dtype=np.uint8)
    named = isinstance(map_location, (str, pt.device))
    on_meta = named and pt.device(map_location).type == "meta"

    def fetch(key: str, nbytes: int, dtype: Any) -> Any:
        record: Record = archive.find(f"data/{key}")
        if record.size != nbytes:
            raise CorruptCheckpointError(
                f"record {brief(key)}: record size ({record.size} bytes) does not match expected "
                f"size ({nbytes} bytes of {dtype})"
            )
        if _options.options.skips:
            return pt.zeros(nbytes, dtype=pt.uint8, device="cpu")
        if on_meta:
            return pt.empty(nbytes, dtype=pt.uint8, device="meta")
        usable = memory is not None and nbytes > 0
        if usable and record.method != 0:
            raise RuntimeError(
                f"load: record {record} is compressed, so it cannot be mapped; use mmap=False"
            )
        start = archive.start_of(record) if usable else 0
        # The same bytes may be read as any type later.
        if usable and start % 16 == 0 and not swap:
            import numpy as np

            return pt.from_numpy(np.asarray(memory)[start : start + nbytes])
        bytes_ = archive.tensor(record)
        if swap:
            _swap(bytes_, _unit(dtype))
        return bytes_

    storages = _Storages(fetch, map_location)
    return how.load(data, 0, storages, archive.length)[0]


def _load_legacy(data: bytes, map_location: Any, how: Reading) -> tuple[Any, int]:
    # What storages hold comes after the tensors.
    with _utils.checked_later():
        return _read_legacy(data, map_location, how)


def _read_legacy(data: bytes, map_location: Any, how: Reading) -> tuple[Any, int]:
    promised = 0
    pending: dict[str, tuple[Any, Any]] = {}

    def fetch(key: str, nbytes: int, dtype: Any) -> Any:
        nonlocal promised
        promised += nbytes
        if promised > len(data):
            raise TruncatedCheckpointError(
                f"storage {brief(key)}: unexpected EOF, {promised} bytes of storages cannot be in "
                f"a file of {len(data)}. The file might be corrupted."
            )
        pending[key] = pt.empty(nbytes, dtype=pt.uint8, device="cpu"), dtype
        return pending[key][0]

    storages = _Storages(fetch, map_location)

    def plain(at: int) -> tuple[Any, int]:
        return _machine.loads(data, find_allowed, _no_storage, build_allowed, at)

    magic, at = plain(0)
    version, at = plain(at)
    if magic != MAGIC_NUMBER or version != PROTOCOL_VERSION:
        raise CorruptCheckpointError(f"Invalid protocol version: {brief(version)}")
    info, at = plain(at)
    little = info.get("little_endian", True) if isinstance(info, dict) else True
    result, at = how.load(data, at, storages)
    keys, at = plain(at)
    if not isinstance(keys, list):
        raise CorruptCheckpointError("the legacy file has no list of storages")
    for key in keys:
        key = str(key) if type(key) is int else key
        if not isinstance(key, str):
            raise CorruptCheckpointError(f"the legacy file lists a storage {brief(key)}")
        if key not in pending:
            raise CorruptCheckpointError(
                f"storage {brief(key)} is in the file but no tensor uses it"
            )
        target, dtype = pending.pop(key)
        end = at + 8 + target.numel()
        if end > len(data):
            raise TruncatedCheckpointError(
                f"unexpected EOF, expected {end - len(data)} more bytes. The file might be "
                "corrupted."
            )
        numel = struct.unpack("<q", data[at : at + 8])[0]
        if numel * dtype.itemsize != target.numel():
            raise CorruptCheckpointError(
                f"storage {brief(key)}: {numel} elements in the file, {target.numel()} bytes "
                "declared"
            )
        if target.numel():
            memoryview(_C._host_bytes(target))[:] = data[at + 8 : end]
            if little != (sys.byteorder == "little"):
                _swap(target, _unit(dtype))
        at = end
    if pending:
        raise CorruptCheckpointError(f"the file lacks storages {brief(sorted(pending)[:5])}")
    return result, at


def _no_storage(pid: Any) -> Any:
    raise CorruptCheckpointError("the header of a legacy file refers to a storage")
