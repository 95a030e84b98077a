"""Names of libraries for communication, and how much is checked."""

from __future__ import annotations

import enum
import os
import warnings
from typing import Any

import pytensorlib as pt

from .. import _gpu
from .._absent.table import BY_MPI
from . import _mpi

__all__ = [
    "Backend",
    "BackendConfig",
    "DebugLevel",
    "get_debug_level",
    "get_default_backend_for_device",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "set_debug_level",
    "set_debug_level_from_env",
]


class DebugLevel(enum.IntEnum):
    """How much is checked: with DETAIL, that all processes make the same call.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.DebugLevel.DETAIL > torch.distributed.DebugLevel.OFF
    True
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


class Backend(str):
    """The name of a library for communication, in small letters.

    Parameters
    ----------
    name : str
        Any.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.Backend("NCCL") == torch.distributed.Backend.NCCL
    True
    """

    __slots__ = ()

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE)
    default_device_backend_map: dict[str, str] = {}  # noqa: RUF012  (PyTorch's, a plain dict)
    backend_capability: dict[str, list[str]] = {}  # noqa: RUF012

    @classmethod
    def register_backend(cls, name: str, func: Any, *args: Any, **kwargs: Any) -> None:
        """Raise: processes communicate by MPI alone."""
        raise NotImplementedError(f"torch.distributed.Backend.register_backend: {BY_MPI}")

    def __new__(cls, name: str) -> Backend:
        """Return the name in small letters."""
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())


class BackendConfig:
    """Which library serves which kind of device: one serves all here.

    Parameters
    ----------
    backend : str
        One name, or pairs such as "cpu:gloo,wgpu:mpi".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> str(torch.distributed.distributed_c10d.BackendConfig("mpi"))
    'cpu:mpi,wgpu:mpi'
    """

    def __init__(self, backend: str) -> None:
        pairs = [part.partition(":") for part in str(backend).lower().split(",")]
        self.device_backend_map = {d: Backend(b) for d, colon, b in pairs if colon}
        for name, colon, _ in pairs:
            if not colon:
                self.device_backend_map |= dict.fromkeys(("cpu", _gpu.name()), Backend(name))

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return the library of each kind of device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{d}:{b}" for d, b in self.device_backend_map.items())


# The libraries of the makers of GPUs, by what GPUs answer as: MPI stands in for them.
_MAKERS = {"cuda": Backend.NCCL, "xpu": Backend.XCCL}
_said: set[str] = set()


def _of_gpus() -> str | None:
    """Return the library that PyTorch has for GPUs as which those here answer, if they do."""
    name = _gpu.name()
    return _MAKERS.get(name) if _gpu.is_here(name) else None


def _say(name: str) -> None:
    """Tell once that MPI stands in for a library."""
    if name not in _said:
        _said.add(name)
        warnings.warn(
            f"torch.distributed: MPI moves the data for the backend {name!r}, also that of GPUs",
            stacklevel=4,
        )


def check_backend(name: str | None) -> Backend:
    """Return the name that a group has by what it was asked for.

    Raises
    ------
    ValueError
        No library is called so.
    RuntimeError
        The library is not here.
    """
    if name is None or name == Backend.UNDEFINED:
        return Backend(Backend.MPI)
    name = Backend(name)
    for part in name.split(","):
        one = part.rpartition(":")[2]
        if one not in Backend.backend_list:
            raise ValueError(f"Invalid backend: '{one}': 'mpi' and 'gloo' name MPI here")
        if one == _of_gpus():
            _say(one)
        elif one not in (Backend.MPI, Backend.GLOO, Backend.UNDEFINED):
            raise RuntimeError(
                f"Distributed package doesn't have {one.upper()} built in: MPI moves the data, "
                "also of GPUs; ask for the backend 'mpi', or 'gloo', which means the same"
            )
    return Backend(name.partition(",")[0].rpartition(":")[2])


def is_available() -> bool:
    """Return whether processes can communicate: mpi4py and an MPI library are installed.

    Returns
    -------
    bool
        False where ``pip install 'pytensorlib[distributed]'`` is still to be done.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_available() in (True, False)
    True
    """
    return _mpi.is_there()


def is_mpi_available() -> bool:
    """Return whether MPI can be used, which serves every group.

    Returns
    -------
    bool
        The same as `is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_mpi_available() == torch.distributed.is_available()
    True
    """
    return _mpi.is_there()


def is_gloo_available() -> bool:
    """Return whether the backend "gloo" can be asked for: here it is another name of MPI.

    Returns
    -------
    bool
        The same as `is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_gloo_available() == torch.distributed.is_available()
    True
    """
    return _mpi.is_there()


def is_nccl_available() -> bool:
    """Return whether the backend "nccl" can be asked for: where GPUs answer as "cuda" it is MPI.

    Returns
    -------
    bool
        False where GPUs answer as "wgpu" only.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_nccl_available()
    False
    """
    return _of_gpus() == Backend.NCCL and _mpi.is_there()


def is_xccl_available() -> bool:
    """Return whether the backend "xccl" can be asked for: where GPUs answer as "xpu" it is MPI.

    Returns
    -------
    bool
        False where GPUs answer as "wgpu" only.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_xccl_available()
    False
    """
    return _of_gpus() == Backend.XCCL and _mpi.is_there()


def is_ucc_available() -> bool:
    """Return False: MPI moves the data.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_ucc_available()
    False
    """
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether groups can be made with a backend.

    Parameters
    ----------
    backend : str
        Such as "gloo".

    Returns
    -------
    bool
        False for all but "mpi" and its other name "gloo", and where GPUs answer as "cuda" "nccl",
        as "xpu" "xccl".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_backend_available("nccl")
    False
    """
    known = (Backend.MPI, Backend.GLOO, _of_gpus())
    return str(backend).lower() in known and _mpi.is_there()


def get_default_backend_for_device(device: Any) -> str:
    """Return the backend for a kind of device.

    Parameters
    ----------
    device : str or device
        Any.

    Returns
    -------
    str
        "mpi"; of a kind of device of PyTorch's as which GPUs answer, its library, such as "nccl".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.get_default_backend_for_device("cpu")
    'mpi'
    """
    kind = pt.device(device).type
    found = _of_gpus()
    return found if found is not None and _MAKERS.get(kind) == found else Backend.MPI


def is_torchelastic_launched() -> bool:
    """Return whether ``pytensorlib.distributed.run`` started this process.

    Returns
    -------
    bool
        Whether the environment says so.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """Return how much is checked: what was set, or ``TORCH_DISTRIBUTED_DEBUG``.

    Returns
    -------
    DebugLevel
        OFF, INFO or DETAIL.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.get_debug_level().name
    'OFF'
    """
    if _level is None:
        set_debug_level_from_env()
    return _level or DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is checked; all processes must set the same.

    Parameters
    ----------
    level : DebugLevel
        OFF, INFO or DETAIL.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.set_debug_level(torch.distributed.DebugLevel.OFF)
    """
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Read ``TORCH_DISTRIBUTED_DEBUG`` again.

    Raises
    ------
    RuntimeError
        It is none of OFF, INFO and DETAIL.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.distributed.set_debug_level_from_env()
    """
    value = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if value not in DebugLevel.__members__:
        raise RuntimeError(
            f"TORCH_DISTRIBUTED_DEBUG must be one of OFF, INFO, or DETAIL, got {value!r}"
        )
    set_debug_level(DebugLevel[value])
