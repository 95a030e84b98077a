"""Loads the pickles of files, by our own machine or by one of Python's unpicklers."""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from . import machine as _machine
from .allowed import CALLABLE, CONSTANTS, KINDS, build_allowed, find_allowed, full_name

__all__ = ["Reading"]


def _known(full: str) -> Any:
    """Return what files name that is another thing here."""
    if full in CALLABLE and full.startswith("torch."):
        return CALLABLE[full][0]
    return KINDS.get(full) or CONSTANTS.get(full)


def _own(module: str, name: str) -> Any:
    """Return what files call ``torch.…``."""
    try:
        obj: Any = importlib.import_module(f"{__name__.partition('.')[0]}{module[5:]}")
        for part in name.split("."):
            obj = getattr(obj, part)
    except (ImportError, AttributeError) as e:
        raise UnpicklingError(f"load: this library has no {full_name(module, name)}") from e
    return obj


class _Reader:
    load_storage: Callable[[Any], Any]

    def persistent_load(self, pid: Any) -> Any:
        return self.load_storage(pid)


class _Anywhere(_Reader, pickle.Unpickler):
    """The standard unpickler, in which ``torch`` means this package."""

    def find_class(self, module: str, name: str) -> Any:
        full = full_name(module, name)
        known = _known(full)
        if known is not None:
            return known
        if full.startswith("torch."):
            return _own(full[: -len(name) - 1], name)
        return super().find_class(module, name)


class _Given(_Reader):
    """An unpickler of the user's, which is asked first for what is no part of the format."""

    def find_class(self, module: str, name: str) -> Any:
        full = full_name(module, name)
        known = _known(full)
        if known is not None:
            return known
        try:
            return super().find_class(module, name)  # type: ignore[misc]
        except (ImportError, AttributeError):
            if not full.startswith("torch."):
                raise
        return _own(full[: -len(name) - 1], name)


class Reading:
    """How the pickles of a file are read."""

    def __init__(self, weights_only: bool, module: Any, args: dict[str, Any]) -> None:
        self.weights_only = weights_only
        self.args = {"encoding": "utf-8", **args}
        given: Any = getattr(module, "Unpickler", pickle.Unpickler)
        standard = given in (pickle.Unpickler, pickle._Unpickler)
        self.kind: Any = _Anywhere if standard else type(given.__name__, (_Given, given), {})

    def load(
        self, data: Any, at: int, storages: Callable[[Any], Any], size: int | None = None
    ) -> tuple[Any, int]:
        """Return the object of the pickle at a place, and where it ends."""
        if self.weights_only:
            encoding = self.args["encoding"]
            return _machine.loads(data, find_allowed, storages, build_allowed, at, size, encoding)
        stream = io.BytesIO(data)
        stream.seek(at)
        unpickler = self.kind(stream, **self.args)
        unpickler.load_storage = storages
        return unpickler.load(), stream.tell()
