"""Checkpoints that all processes write and read, each its rows; PyTorch's files."""

from __future__ import annotations

from ..._absent.modules import fill, tell_missing
from ..._absent.table import BY_MPI
from .api import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]

fill(
    globals(),
    BY_MPI,
    "StorageReader StorageWriter LoadPlanner SavePlanner LoadPlan SavePlan ReadItem WriteItem "
    "DefaultLoadPlanner DefaultSavePlanner",
)
tell_missing(globals(), BY_MPI)
