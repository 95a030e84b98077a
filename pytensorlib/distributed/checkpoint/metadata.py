"""The metadata of a checkpoint of several files, in PyTorch's format."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytensorlib as pt

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]

STATE_DICT_TYPE = dict[str, Any]


class _MEM_FORMAT_ENCODING(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class ChunkStorageMetadata:
    """Where a part of a tensor is in it.

    Parameters
    ----------
    offsets : Size
        Its first element.
    sizes : Size
        Its shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint.metadata import ChunkStorageMetadata
    >>> ChunkStorageMetadata(torch.Size([2]), torch.Size([3])).sizes
    torch.Size([3])
    """

    offsets: Any
    sizes: Any


@dataclass
class TensorProperties:
    """What a tensor is beside its shape.

    Parameters
    ----------
    dtype : dtype, default float32
        Its type.
    layout : layout, default strided
        Its layout.
    requires_grad : bool, default False
        Whether it required grad.
    memory_format : memory_format, default contiguous_format
        The order of its memory.
    pin_memory : bool, default False
        Whether its memory was pinned.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.metadata import TensorProperties
    >>> TensorProperties().dtype
    torch.float32
    """

    dtype: Any = pt.float32
    layout: Any = pt.strided
    requires_grad: bool = False
    memory_format: Any = pt.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> Any:
        order = _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT
        return self.dtype, self.layout, self.requires_grad, order, self.pin_memory

    def __setstate__(self, state: Any) -> None:
        self.dtype, self.layout, self.requires_grad, _, self.pin_memory = state
        self.memory_format = pt.contiguous_format


@dataclass
class TensorStorageMetadata:
    """A tensor and its parts.

    Parameters
    ----------
    properties : TensorProperties
        What it is beside its shape.
    size : Size
        Its shape.
    chunks : list of ChunkStorageMetadata
        Its parts.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.distributed.checkpoint import metadata as m
    >>> m.TensorStorageMetadata(m.TensorProperties(), torch.Size([2]), []).size
    torch.Size([2])
    """

    properties: TensorProperties
    size: Any
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object that is no tensor.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.metadata import BytesStorageMetadata
    >>> BytesStorageMetadata()
    BytesStorageMetadata()
    """


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a part.

    Parameters
    ----------
    fqn : str
        Of the tensor or object.
    offset : Size, optional
        Of a tensor's part.
    index : int, optional
        Its place among the parts; not compared.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.metadata import MetadataIndex
    >>> MetadataIndex("a", index=1) == MetadataIndex("a")
    True
    """

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(
        self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None
    ) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else pt.Size(offset))
        object.__setattr__(self, "index", index)


@dataclass
class StorageMeta:
    """Where a checkpoint was saved.

    Parameters
    ----------
    checkpoint_id, save_id, load_id : str, optional
        Its folder, and the calls that wrote and read it.
    modules : list of str
        Not used.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.metadata import StorageMeta
    >>> StorageMeta("folder").checkpoint_id
    'folder'
    """

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All of it.

    Parameters
    ----------
    state_dict_metadata : dict
        What is saved, by name.
    planner_data : dict, optional
        The keys by which each name is found in the nested state.
    storage_data : dict, optional
        Where each part is.
    storage_meta : StorageMeta, optional
        Where it was saved.
    version : str, optional
        Of the format.

    Examples
    --------
    >>> from pytensorlib.distributed.checkpoint.metadata import Metadata
    >>> Metadata({}).state_dict_metadata
    {}
    """

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None
