"""Options of `save` and `load`: devices, byte order, memory mapping, alignment."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import pytensorlib as pt

from .. import _C, _gpu
from .._system import MAP_PRIVATE, MAP_SHARED
from .allowed import KINDS

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "check_module_version_greater_or_equal",
    "default_restore_location",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)
# Where our own places stand among registered ones: those below are asked before.
OWN = 10

Tagger = Callable[[Any], str | None]
Deserializer = Callable[[Any, str], Any]

_packages: list[tuple[int, int, Tagger, Deserializer]] = []


class SourceChangeWarning(Warning):
    """PyTorch warned so where a module's source had changed since its file was written.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> issubclass(torch.serialization.SourceChangeWarning, Warning)
    True
    """


class LoadEndianness(Enum):
    """Orders of bytes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.LoadEndianness.LITTLE.value
    2
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options(threading.local):
    def __init__(self) -> None:
        self.endianness: LoadEndianness | None = None
        self.map_flags = MAP_PRIVATE
        self.skips = False


options = _Options()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the order of bytes in files that do not tell theirs.

    Returns
    -------
    LoadEndianness or None
        As `set_default_load_endianness` left it; None stands for that of the machine.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.get_default_load_endianness() is None
    True
    """
    return options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the order of bytes in files that do not tell theirs; old ones do not.

    Parameters
    ----------
    endianness : LoadEndianness or None
        None for that of the machine.

    Raises
    ------
    TypeError
        It is something else.

    Examples
    --------
    >>> from pytensorlib import serialization
    >>> serialization.set_default_load_endianness(serialization.LoadEndianness.LITTLE)
    >>> serialization.get_default_load_endianness().name
    'LITTLE'
    >>> serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.endianness = endianness


def default_order() -> str:
    """Return the order of bytes of a file that does not tell it, as "little" or "big"."""
    kind = options.endianness
    return sys.byteorder if kind in (None, LoadEndianness.NATIVE) else kind.name.lower()


def get_default_mmap_options() -> int:
    """Return how ``load(mmap=True)`` maps files.

    Returns
    -------
    int
        ``mmap.MAP_PRIVATE``, or what `set_default_mmap_options` set.

    Examples
    --------
    >>> import mmap
    >>> import pytensorlib as torch
    >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return options.map_flags


class set_default_mmap_options:
    """Set how ``load(mmap=True)`` maps files, from now on or in a ``with`` block.

    Parameters
    ----------
    flags : int
        ``mmap.MAP_PRIVATE``, where files stay as they are, or ``mmap.MAP_SHARED``, where what is
        written to tensors goes to the file.

    Raises
    ------
    ValueError
        It is neither.

    Examples
    --------
    >>> import mmap
    >>> import pytensorlib as torch
    >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.before = options.map_flags
        options.map_flags = flags

    def __enter__(self) -> None:
        """It is set already."""

    def __exit__(self, *error: Any) -> None:
        options.map_flags = self.before


class skip_data:
    """Within a ``with`` block `save` writes zeros for elements of tensors, and `load` reads none.

    Parameters
    ----------
    materialize_fake_tensors : bool, default False
        Not used.

    Examples
    --------
    >>> import io
    >>> import pytensorlib as torch
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before, options.skips = options.skips, True

    def __exit__(self, *error: Any) -> None:
        options.skips = self.before


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Let functions say what the places of storages are called in files, and what names mean.

    Parameters
    ----------
    priority : int
        The lowest is asked first; the places that are known, the CPU and GPUs, have 10.
    tagger : callable
        Takes a storage and returns the name of its place, or None if it does not know.
    deserializer : callable
        Takes a storage and such a name, and returns a storage there, or None.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def meaning(storage, location):
    ...     return storage if location == "attic" else None
    >>> torch.serialization.register_package(30, lambda storage: None, meaning)
    >>> storage = torch.ones(1).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "attic") is storage
    True
    """
    _packages.append((priority, len(_packages), tagger, deserializer))
    _packages.sort(key=lambda package: package[:2])


def asked(first: bool) -> list[tuple[int, int, Tagger, Deserializer]]:
    """Return what is registered before our own places, or behind them."""
    return [package for package in _packages if (package[0] < OWN) is first]


def location_tag(storage: Any) -> str:
    """Return what the place of a storage is called in files.

    Parameters
    ----------
    storage : storage
        Typed or not.

    Returns
    -------
    str
        "cpu", a GPU's name, or what a function of `register_package` says.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.location_tag(torch.ones(1).untyped_storage())
    'cpu'
    """
    for _, _, tagger, _ in asked(first=True):
        found = tagger(storage)
        if found:
            return found
    device = storage.device
    return device.type if device.index is None else f"{device.type}:{device.index}"


def device_of(location: str) -> Any:
    """Return the device that a name means, of those that are known; None of others."""
    if location == "cpu":
        return "cpu"
    kind, _, index = location.partition(":")
    if kind == "cuda" and not _gpu.is_here(kind):
        raise RuntimeError(NO_CUDA)
    if kind in (_gpu.OWN, _gpu.name()):
        if index.isdecimal() and _C._wgpu_available() and int(index) >= _C._wgpu_count():
            raise RuntimeError(
                f"Attempting to deserialize object on {_gpu.title()} device {index} but "
                f"torch.{_gpu.name()}.device_count() is {_C._wgpu_count()}. Please use torch.load "
                "with map_location to map your storages to an existing device."
            )
        return location
    return location if kind == "meta" else None


def default_restore_location(storage: Any, location: str) -> Any:
    """Return a storage at the place that a name means.

    Parameters
    ----------
    storage : UntypedStorage
        In the CPU's memory.
    location : str
        As `location_tag` returns it.

    Returns
    -------
    UntypedStorage
        The same, or a copy on a GPU.

    Raises
    ------
    RuntimeError
        Nobody knows the place.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.ones(1).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "cpu") is storage
    True
    """
    for first in (True, False):
        for _, _, _, deserializer in asked(first):
            found = deserializer(storage, location)
            if found is not None:
                return found
        device = device_of(location) if first else None
        if device is not None:
            return storage if device == "cpu" else storage.to(device)
    raise RuntimeError(
        f"don't know how to restore data location of a storage (tagged with {location!r:.100}): "
        "use map_location='cpu'"
    )


def validate_cuda_device(location: str) -> int:
    """Return the number of the CUDA device that a name means.

    Parameters
    ----------
    location : str
        Such as "cuda:0".

    Returns
    -------
    int
        Of the current one where the name has none.

    Raises
    ------
    RuntimeError
        There is none, as where GPUs do not answer as "cuda"; the text says what to do.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.validate_cuda_device("cuda:0")
    Traceback (most recent call last):
        ...
    RuntimeError: Attempting to deserialize object on a CUDA device but ...
    """
    device_of(location)
    index = pt.device(location).index
    return _C._wgpu_current() if index is None else index


def validate_hpu_device(location: str) -> int:
    """Raise: there is no HPU.

    Parameters
    ----------
    location : str
        Such as "hpu:0".

    Raises
    ------
    RuntimeError
        Always, with what to do.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.validate_hpu_device("hpu:0")
    Traceback (most recent call last):
        ...
    RuntimeError: The HPU device module is not registered. ...
    """
    raise RuntimeError(
        "The HPU device module is not registered. If you are running on a CPU-only machine, "
        "please use torch.load with map_location=torch.device('cpu') to map your storages to the "
        "CPU."
    )


def normalize_storage_type(storage_type: type) -> type:
    """Return the class of storages of this package that has the name of another.

    Parameters
    ----------
    storage_type : type
        Such as `FloatStorage`.

    Returns
    -------
    type
        Ours of that name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    True
    """
    return getattr(pt, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """Return the type of tensors with the elements of a storage.

    Parameters
    ----------
    storage : TypedStorage
        Any.

    Returns
    -------
    type
        Such as `FloatTensor`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> storage = torch.FloatStorage(2)
    >>> torch.serialization.storage_to_tensor_type(storage) is torch.FloatTensor
    True
    """
    return getattr(pt, pt.empty(0, dtype=storage.dtype).type().rpartition(".")[2])


class StorageType:
    """The class of a storage as files name it.

    Parameters
    ----------
    name : str
        Such as "FloatStorage".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.serialization.StorageType("FloatStorage").dtype
    torch.float32
    """

    def __init__(self, name: str) -> None:
        self._dtype = KINDS[f"torch.{name}"].dtype

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Return whether a module is of a version, or of a later one.

    Parameters
    ----------
    module : module
        With a ``__version__``.
    req_version_tuple : tuple
        The parts of the version.
    error_if_malformed : bool, default True
        Raise where they cannot be compared, instead of warning.

    Returns
    -------
    bool
        True also after a warning.

    Raises
    ------
    RuntimeError
        They cannot be compared.

    Examples
    --------
    >>> import numpy
    >>> from pytensorlib.serialization import check_module_version_greater_or_equal
    >>> check_module_version_greater_or_equal(numpy, (1, 0))
    True
    """
    parts = module.__version__.split(".")
    try:
        pairs = zip(req_version_tuple, parts, strict=False)
        found = tuple(type(wanted)(part) for wanted, part in pairs)
        if len(found) < len(req_version_tuple):
            raise IndexError("it has fewer parts")
        return found >= req_version_tuple
    except (IndexError, TypeError, ValueError) as error:
        text = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            f"cannot be compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(text) from error
        warnings.warn(f"{text}, but continuing assuming that requirement is met", stacklevel=2)
        return True


@contextmanager
def mkdtemp() -> Iterator[str]:
    """Make a folder that is gone after a ``with`` block.

    Returns
    -------
    str
        Its path.

    Examples
    --------
    >>> import os
    >>> import pytensorlib as torch
    >>> with torch.serialization.mkdtemp() as path:
    ...     inside = os.path.isdir(path)
    >>> inside, os.path.isdir(path)
    (True, False)
    """
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        yield path


def wants_weights_only(given: bool | None, pickle_module: Any) -> bool:
    """Tell whether to read tensors and plain values alone; PyTorch's variables may say so."""
    true = ("1", "y", "yes", "true")
    always, never = (
        os.environ.get(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", "0").lower() in true
        for name in ("", "NO_")
    )
    if always and never:
        raise RuntimeError(
            "load: Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or "
            "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if always:
        return True
    if given is not None:
        return given
    if never:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None
