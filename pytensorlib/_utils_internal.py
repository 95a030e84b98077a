"""Paths of files, for PyTorch's own tests."""

from __future__ import annotations

import os
import tempfile

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path"]

torch_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_MASTER_ADDR, TEST_MASTER_PORT = "127.0.0.1", 29500
USE_GLOBAL_DEPS, USE_RTLD_GLOBAL_WITH_LIBTORCH = True, False


def get_file_path(*path_components: str) -> str:
    """Return the path of a file beside the package.

    Parameters
    ----------
    *path_components : str
        Its parts.

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> from pytensorlib._utils_internal import get_file_path
    >>> get_file_path("torch", "bin").endswith("bin")
    True
    """
    return os.path.join(torch_parent, *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Return the path of a file.

    Parameters
    ----------
    *path_components : str
        Its parts.

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> from pytensorlib._utils_internal import get_file_path_2
    >>> get_file_path_2("a")
    'a'
    """
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """Return a folder that can be written to: this one, or a new one for the time being.

    Parameters
    ----------
    path : str
        A folder.

    Returns
    -------
    str
        A folder.

    Examples
    --------
    >>> import tempfile
    >>> from pytensorlib._utils_internal import get_writable_path
    >>> get_writable_path(tempfile.gettempdir()) == tempfile.gettempdir()
    True
    """
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))
