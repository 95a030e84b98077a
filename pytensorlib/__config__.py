"""How the package was built and what it runs on."""

from __future__ import annotations

from . import _C, get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return the version and the instruction set in use.

    Returns
    -------
    str
        Several lines.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> "instruction set" in torch.__config__.show()
    True
    """
    machine = _C._machine()
    return (
        f"pytensorlib {_C.__version__}\n"
        f"  - instruction set: {machine['level']}\n"
        f"  - AMX: {machine['amx']}\n"
        "  - GPU: wgpu (Vulkan, Metal or DX12), no CUDA\n"
    )


def _cxx_flags() -> str:
    return ""


def parallel_info() -> str:
    """Return how operators share the cores.

    Returns
    -------
    str
        Several lines.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> "threads" in torch.__config__.parallel_info()
    True
    """
    return f"a pool of our own, threads: {get_num_threads()}\n"
