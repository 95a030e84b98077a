"""Writes pickles in which tensors and classes have PyTorch's names."""

from __future__ import annotations

import io
import pickle
import sys
from collections import OrderedDict
from types import FunctionType
from typing import IO, Any

import pytensorlib as pt

from .. import _C
from .._legacy.names import STORED
from .._tensor.pickling import _get_obj_state, _wrapper_parts, _wraps
from ..storage import TypedStorage
from .allowed import CONSTANTS
from .options import location_tag, options
from .sparse import sparse_parts

__all__ = ["CheckpointPickler", "SavedStorage", "location_of", "pickler_of"]

ROOTS = ("pytensorlib", "torch")
# The compiled pickler insists on importing what it names; this one can be told.
Base: Any = pickle._Pickler


TUPLES = (b"", pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
# Exact classes that are no storages, and that nobody reduces.
PLAIN = frozenset({bool, int, float, str, tuple, list, dict})


class FileName:
    """A global written into a file by name, without being importable here."""

    def __init__(self, path: str) -> None:
        self.module, _, self.name = path.rpartition(".")

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} exists in files only")


def _names(*paths: str) -> dict[str, FileName]:
    return {path.rpartition(".")[2]: FileName(path) for path in paths}


NAMES = _names(
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_wrapper_subclass",
    "torch._utils._rebuild_sparse_tensor",
    "torch.serialization._get_layout",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
    "torch.Size",
    "torch.device",
    "torch.storage.UntypedStorage",
    *(f"torch.{name}" for name in STORED.values()),
)


class SavedStorage:
    """One storage of a file."""

    def __init__(self, key: str, memory: Any, dtype: Any, kind: Any) -> None:
        self.key = key
        self.dtype = dtype
        self.kind = kind
        self.location = location_tag(memory)
        self.numel = memory.nbytes() // dtype.itemsize
        self.memory = memory  # keeps the address taken while the file is made

    def bytes(self) -> Any:
        if self.numel == 0:
            return b""
        if options.skips:
            return bytes(self.numel * self.dtype.itemsize)
        flat = self.memory._as_bytes()
        n = self.numel * self.dtype.itemsize
        if flat.numel() != n:
            flat = flat[:n]
        return memoryview(_C._host_bytes(flat.cpu()))


def location_of(device: Any) -> str:
    return device.type if device.index is None else f"{device.type}:{device.index}"


class CheckpointPickler(Base):
    """Writes tensors as PyTorch does, and our classes by PyTorch's names."""

    dispatch = Base.dispatch.copy()

    def __init__(self, stream: IO[bytes], protocol: int, legacy: bool) -> None:
        super().__init__(stream, protocol)
        self.legacy = legacy
        # The older format knows no class for bytes as such.
        self.bytes = NAMES["ByteStorage" if legacy else "UntypedStorage"]
        self.storages: dict[Any, SavedStorage] = {}
        self.plain = PLAIN | {pt.Tensor}
        self.dispatch[pt.Tensor] = CheckpointPickler.save_tensor
        self.dispatch[pt.dtype] = CheckpointPickler.save_dtype
        self.dispatch[pt.Size] = CheckpointPickler.save_size
        self.dispatch[pt.device] = CheckpointPickler.save_device

    def save_name(self, obj: FileName) -> None:
        self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[FileName] = save_name

    def save_dtype(self, obj: Any) -> None:
        self.save(NAMES.setdefault(str(obj), FileName(f"torch.{str(obj).rpartition('.')[2]}")))

    def save_size(self, obj: Any) -> None:
        self.save_reduce(NAMES["Size"], (tuple(obj),), obj=obj)

    def save_device(self, obj: Any) -> None:
        args = (obj.type,) if obj.index is None else (obj.type, obj.index)
        self.save_reduce(NAMES["device"], args, obj=obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None) or ""
        root, dot, path = module.partition(".")
        if root not in ROOTS:
            super().save_global(obj, name)
            return
        name = name or obj.__qualname__
        outer, inner = name.rpartition(".")[::2]
        if outer and self.proto < 4:  # whose globals have no dots
            owner = sys.modules[module]
            for part in outer.split("."):
                owner = getattr(owner, part)
            self.save_reduce(getattr, (owner, inner), obj=obj)
            return
        self.write(f"ctorch{dot}{path}\n{name}\n".encode())
        self.memoize(obj)

    dispatch[type(FileName.__call__)] = save_global

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write an object; those that files hold most of go without the questions of others."""
        kind = type(obj)
        if kind in self.plain:
            self.framer.commit_frame()
            memo = self.memo.get(id(obj))
            if memo is None:
                self.dispatch[kind](self, obj)
            else:
                self.write(self.get(memo[0]))
            return
        super().save(obj, save_persistent_id)

    def save_known(self, obj: Any) -> None:
        """Write a name or a text that has most likely been written before."""
        memo = self.memo.get(id(obj))
        if memo is None:
            self.dispatch[type(obj)](self, obj)
        else:
            self.write(self.get(memo[0]))

    def save_ints(self, values: tuple[int, ...]) -> None:
        """Write a tuple of integers."""
        if not values:
            self.write(pickle.EMPTY_TUPLE)
            return
        few = len(values) <= 3
        if not few:
            self.write(pickle.MARK)
        for value in values:
            self.save_long(value)
        self.write(TUPLES[len(values)] if few else pickle.TUPLE)

    def save_tensor(self, obj: Any) -> None:
        function, args = self.reduced(obj)[:2]
        if function is not NAMES["_rebuild_tensor_v2"] or self.proto < 2:
            self.save_reduce(function, args, obj=obj)
            return
        # The same, straight away: most of what files hold.
        saved, offset, size, stride, grad, hooks = args
        write = self.write
        self.save_known(function)
        write(pickle.MARK + pickle.MARK)
        kind, key, location, numel, *rest = self.persistent_id(saved)[1:]
        for part in ("storage", kind, key, location):
            self.save_known(part)
        self.save_long(numel)
        write(pickle.NONE * len(rest) + pickle.TUPLE + pickle.BINPERSID)
        self.save_long(offset)
        self.save_ints(size)
        self.save_ints(stride)
        write(pickle.NEWTRUE if grad else pickle.NEWFALSE)
        self.save_known(type(hooks))
        write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self.memoize(obj)

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, SavedStorage):
            saved, kind = obj, obj.kind
        elif isinstance(obj, TypedStorage):
            kind = NAMES[STORED[obj.dtype]]
            saved = self._storage_of(obj._untyped_storage, obj.dtype, kind)
        elif isinstance(obj, _C.UntypedStorage):
            kind = self.bytes
            saved = self._storage_of(obj, pt.uint8, kind)
        else:
            return None
        pid = ("storage", kind, saved.key, saved.location, saved.numel)
        return (*pid, None) if self.legacy else pid

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is pt.layout:
            return NAMES["_get_layout"], (str(obj),)
        if isinstance(obj, pt.Tensor) and not pt.nn.parameter.is_lazy(obj):
            return self.reduced(obj)
        return NotImplemented

    def reduced(self, obj: Any) -> Any:
        """Return what makes a tensor again: a function and its arguments."""
        state = _get_obj_state(obj)
        kind = type(obj)
        if kind is pt.nn.Parameter:
            args: tuple[Any, ...] = (obj.data, obj.requires_grad, OrderedDict())
            if state:
                return NAMES["_rebuild_parameter_with_state"], (*args, state)
            return NAMES["_rebuild_parameter"], args
        if obj._is_any_sparse:
            parts = (*sparse_parts(obj)[1], obj.size())
            if obj.is_sparse:
                parts = (*parts, obj.is_coalesced())
            return NAMES["_rebuild_sparse_tensor"], (obj.layout, parts)
        if obj.is_meta:
            plain = NAMES["_rebuild_meta_tensor_no_storage"]
            args = (obj.dtype, tuple(obj.size()), obj.stride(), obj.requires_grad)
        elif _wraps(obj):
            plain, args = NAMES["_rebuild_wrapper_subclass"], _wrapper_parts(obj)
        else:
            plain, args = self.stored(obj)
        if kind is pt.Tensor and not state:
            return plain, args
        return NAMES["_rebuild_from_type_v2"], (plain, kind, args, state)

    def stored(self, obj: Any) -> tuple[FileName, tuple[Any, ...]]:
        """Return what makes a plain tensor of a storage in the file."""
        typed = obj.dtype in STORED
        # Types from after storages had classes: their memory is saved as bytes.
        if not typed and f"torch.{str(obj.dtype).rpartition('.')[2]}" not in CONSTANTS:
            raise NotImplementedError(f"save: tensors of {obj.dtype} cannot be saved")
        plain = NAMES["_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3"]
        storage = NAMES[STORED[obj.dtype]] if typed else self.bytes
        args: tuple[Any, ...] = (
            self._storage_of(obj.untyped_storage(), obj.dtype if typed else pt.uint8, storage),
            obj.storage_offset(),
            tuple(obj.size()),
            obj.stride(),
            obj.requires_grad,
            OrderedDict(),
        )
        return plain, args if typed else (*args, obj.dtype)

    def _storage_of(self, memory: Any, dtype: Any, kind: Any) -> SavedStorage:
        n = memory.nbytes()
        place = (memory.device, memory.data_ptr(), n) if n else len(self.storages)
        saved = self.storages.get(place)
        if saved is None:
            saved = SavedStorage(str(len(self.storages)), memory, dtype, kind)
            self.storages[place] = saved
        elif saved.dtype != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                f"types: got {saved.dtype} and {dtype}. Clone one of them."
            )
        return saved


def pickler_of(module: Any) -> Any:
    """Return the class that writes files, with what a module's ``Pickler`` knows of other objects.

    Those of dill and cloudpickle write functions and classes that cannot be imported.
    """
    given: Any = getattr(module, "Pickler", Base)
    if issubclass(given, Base) and given is not Base:
        return _inheriting(given)
    if hasattr(given, "reducer_override") or given.__init__ is not pickle.Pickler.__init__:
        return _asking(given)
    return CheckpointPickler


def _inheriting(given: Any) -> Any:
    def save_named(self: Any, obj: Any, **options: Any) -> None:
        root = (getattr(obj, "__module__", None) or "").partition(".")[0]
        how = CheckpointPickler.save_global if root in ROOTS else given.dispatch[type(obj)]
        how(self, obj, **options)

    ours = {
        kind: how
        for kind, how in CheckpointPickler.dispatch.items()
        if Base.dispatch.get(kind) is not how
    }
    named = {kind: save_named for kind in (FunctionType, type) if kind in given.dispatch}
    members = {"dispatch": {**given.dispatch, **ours, **named}}
    return type("CheckpointPickler", (CheckpointPickler, given), members)


def _asking(given: Any) -> Any:
    class AskingPickler(CheckpointPickler):
        def __init__(self, stream: IO[bytes], protocol: int, legacy: bool) -> None:
            super().__init__(stream, protocol, legacy)
            self.given = given(io.BytesIO(), protocol)
            if hasattr(self.given, "dispatch_table"):
                self.dispatch_table = self.given.dispatch_table

        def reducer_override(self, obj: Any) -> Any:
            made = super().reducer_override(obj)
            root = (getattr(obj, "__module__", None) or "").partition(".")[0]
            override = getattr(self.given, "reducer_override", None)
            if made is not NotImplemented or root in ROOTS or override is None:
                return made
            return override(obj)

    return AskingPickler
