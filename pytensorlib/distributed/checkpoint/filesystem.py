"""Checkpoints in a folder: a file for each process, and one that says what is where.

The files are PyTorch's: what either writes the other reads.
"""

from __future__ import annotations

import io
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytensorlib as pt

from ..._serialization.pickler import CheckpointPickler
from . import metadata as meta
from .api import CheckpointException

__all__ = ["FileSystemReader", "FileSystemWriter"]

INDEX = ".metadata"


@dataclass
class _StorageInfo:
    """The position of a part: its file, offset and length."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None


Base: Any = pickle._Unpickler  # the one that can be told what to build


class _Index(Base):
    """Reads the index: it makes what an index holds, and nothing else."""

    classes: dict[str, Any] = {  # noqa: RUF012
        **{f"torch.distributed.checkpoint.metadata.{n}": getattr(meta, n) for n in meta.__all__},
        "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING": meta._MEM_FORMAT_ENCODING,
        "torch.distributed.checkpoint.filesystem._StorageInfo": _StorageInfo,
        "torch.Size": pt.Size,
        "torch.serialization._get_layout": lambda name: getattr(pt, name.rpartition(".")[2]),
        **dict.fromkeys(
            f"{place}.{kind}Path"
            for place in ("pathlib", "pathlib._local")
            for kind in ("Posix", "Windows", "PurePosix", "PureWindows")
        ),
    }

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in self.classes:
            return self.classes[full] or (lambda *parts: "/".join(parts))
        if module == "torch" and isinstance(getattr(pt, name, None), pt.dtype):
            return getattr(pt, name)
        raise CheckpointException(f"{INDEX} names {full}, which no index of a checkpoint holds", {})

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) not in (*self.classes.values(),):
            raise CheckpointException(f"{INDEX} sets the state of a {type(made).__name__}", {})
        if isinstance(made, meta.TensorProperties):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)

    dispatch = {**Base.dispatch, pickle.BUILD[0]: load_build}


class FileSystemWriter:
    """Writes a checkpoint to a folder that all processes reach.

    Parameters
    ----------
    path : str or Path
        The folder; made if it is not there.
    single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead : optional
        Not used: each process writes one file.
    cache_staged_state_dict : bool, default False
        Not used.
    overwrite : bool, default True
        Whether a checkpoint that is there may be replaced.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint import FileSystemWriter
    >>> FileSystemWriter("folder").checkpoint_id
    'folder'
    """

    def __init__(
        self,
        path: Any,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ) -> None:
        self.path, self.overwrite = Path(path), overwrite

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return str(self.path)

    def write(self, rank: int, items: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """Write a process's parts; returns where each is.

        Parameters
        ----------
        rank : int
            The process.
        items : list
            The name of each part, and the part.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        name, found, at = f"__{rank}_0.distcp", {}, 0
        with open(self.path / name, "wb") as f:
            for index, value in items:
                part = io.BytesIO()
                pt.save(value, part)
                f.write(part.getbuffer())
                size = part.getbuffer().nbytes
                found[index] = _StorageInfo(name, at, size)
                at += size
        return found

    def finish(self, metadata: Any) -> None:
        """Write the index, when all parts are there.

        Parameters
        ----------
        metadata : Metadata
            The index.
        """
        stream = io.BytesIO()
        CheckpointPickler(stream, 2, False).dump(metadata)
        complete = self.path / f"{INDEX}.tmp"
        complete.write_bytes(stream.getvalue())
        os.replace(complete, self.path / INDEX)


class FileSystemReader:
    """Reads a checkpoint from a folder.

    Parameters
    ----------
    path : str or Path
        The folder.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint import FileSystemReader
    >>> FileSystemReader("folder").checkpoint_id
    'folder'
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> str:
        """The folder."""
        return str(self.path)

    def read_metadata(self) -> Any:
        """Return the index.

        Raises
        ------
        CheckpointException
            There is none, or it is damaged.
        """
        try:
            data = (self.path / INDEX).read_bytes()
        except OSError as error:
            raise CheckpointException(f"no checkpoint in {self.path}: {error}", {}) from None
        try:
            found = _Index(io.BytesIO(data)).load()
        except CheckpointException:
            raise
        except Exception as error:
            raise CheckpointException(f"{self.path / INDEX} is damaged: {error}", {}) from error
        if not isinstance(found, meta.Metadata):
            raise CheckpointException(f"{self.path / INDEX} holds no index", {})
        return found

    def read(self, info: Any) -> Any:
        """Return a part.

        Parameters
        ----------
        info : object
            Where it is, of the index.
        """
        path = (self.path / info.relative_path).resolve()
        if self.path.resolve() not in path.parents:
            raise CheckpointException(f"{INDEX} names a file outside of {self.path}", {})
        with open(path, "rb") as f:
            f.seek(info.offset)
            return pt.load(io.BytesIO(f.read(info.length)), map_location="cpu")
