"""What `Tensor` does in Python: printing, copying, pickling and the entry to autograd.

The functions here become methods of `_C.Tensor` when the package is imported, by `attach`.
"""

from __future__ import annotations

import enum
import operator
import weakref
from collections.abc import Iterator
from copy import deepcopy
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .. import _C
from .._serialization.sparse import sparse_parts
from .._tensor_str import _str
from ..autograd import _callbacks
from . import spectral as _spectral
from .constructors import (  # noqa: F401  (the extension asks for `_constructed`)
    _check_legacy_device,
    _constructed,
    _legacy_new,
    _placed_type,
    _scalar_name,
)
from .pickling import (
    _as_class,
    _attributes,
    _get_obj_state,
    _rebuilt,
    _set_obj_state,
    _unpickled,
    _unpickled_meta,
    _unpickled_sparse,
    _wrapper_parts,
    _wraps,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["attach"]

# The objects that stand for storages, of which each has one while somebody keeps it.
_storages: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _as_method(function: Any) -> Any:
    """Return a function once more, as a method that is told by itself."""
    method = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    method.__kwdefaults__, method.__doc__ = function.__kwdefaults__, function.__doc__
    method.__annotations__ = function.__annotations__
    method.__qualname__ = f"Tensor.{function.__name__}"
    return method


class _Methods:
    """The methods; `self` is a tensor in all of them."""

    _disabled_torch_function = staticmethod(_C._disabled_torch_function_impl)
    _enable_torch_function = staticmethod(_C._enable_torch_function)

    stft, istft = _as_method(_spectral.stft), _as_method(_spectral.istft)

    # NumPy's own operators must leave `array + tensor` to the tensor.
    __array_priority__ = 1000

    @classmethod
    def __torch_function__(
        cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute as for plain tensors; results are of the subclass."""
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        result = _C._disabled_torch_function_impl(func, types, args, kwargs)
        return result if func in _AS_THEY_ARE else _of_class(result, cls)

    __torch_dispatch__ = staticmethod(_C._disabled_torch_dispatch_impl)

    @staticmethod
    def _make_wrapper_subclass(
        cls: Any,  # noqa: PLW0211
        size: Any,
        strides: Any = None,
        storage_offset: int | None = None,
        memory_format: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        dispatch_sizes_strides_policy: str | None = None,
        dispatch_device: bool = False,
        dispatch_layout: bool = False,
        _extra_dispatch_keys: Any = None,
        storage_size: int | None = None,
    ) -> Any:
        """Make a tensor without memory, for which its class answers.

        Parameters
        ----------
        cls : type
            A subclass of `Tensor` with ``__torch_dispatch__``.
        size, strides, storage_offset, dtype, device
            What the tensor says of itself.
        requires_grad : bool
            Whether gradients are computed for it.
        """
        if layout is not None and layout is not _C.strided:
            raise NotImplementedError(
                "_make_wrapper_subclass: only torch.strided is a layout of it"
            )
        made = _C._wrapper_tensor(
            cls,
            list(size),
            None if strides is None else list(strides),
            storage_offset or 0,
            _C.get_default_dtype() if dtype is None else dtype,
            "cpu" if device is None else device,
        )
        return made.requires_grad_() if requires_grad else made

    @classmethod
    def __init_subclass__(cls: Any, **kwargs: Any) -> None:
        super(_C.Tensor, cls).__init_subclass__(**kwargs)  # type: ignore[misc]
        if cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
            _C._enable_torch_dispatch()
            inherited = _C.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
            if getattr(cls.__torch_function__, "__func__", None) is inherited:
                # What answers below gradients need not do so above them, too.
                cls.__torch_function__ = _C._disabled_torch_function_impl
        if cls.__torch_function__ is not _C._disabled_torch_function_impl:
            _C._enable_torch_function()

    def __repr__(self: Any, *, tensor_contents: str | None = None) -> str:
        before = _C._rest_torch_function(2)
        try:
            return _str(self, tensor_contents=tensor_contents)
        finally:
            _C._rest_torch_function(before)

    def __format__(self: Any, spec: str) -> str:
        # A subclass still shows its name where no number format is asked for.
        plain = spec or type(self).__name__ == "Tensor"
        if self.dim() == 0 and plain and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __iter__(self: Any) -> Iterator[Any]:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self: Any) -> Any:
        return self if self.dim() == 0 else self.flip(0)

    def __contains__(self: Any, item: Any) -> bool:
        if isinstance(item, (_C.Tensor, int, float, complex, bool)):
            return bool((item == self).any().item())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}."
        )

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __array_wrap__(self: Any, array: Any, context: Any = None, scalar: bool = False) -> Any:
        import numpy as np

        if array.dtype == bool:
            # NumPy's comparisons give arrays that are not writable when 0-d.
            array = np.array(array)
        return _C.from_numpy(np.asarray(array))

    def numpy(self: Any, *, force: bool = False) -> np.ndarray:
        """Return an array over the same memory; with `force`, whatever copying that takes.

        Parameters
        ----------
        force : bool, default False
            Whether to detach and copy to host memory where that is needed.

        Returns
        -------
        ndarray
            It shares the tensor's memory where it can; bfloat16 has no NumPy type.

        Raises
        ------
        RuntimeError
            The tensor requires grad, and not `force`.
        TypeError
            NumPy has no such type, or the tensor is on the GPU and not `force`.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.zeros(2)
        >>> x.numpy()[0] = 5
        >>> x
        tensor([5., 0.])
        """
        return _C._to_numpy(self, force)

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None:
            dl_device = (int(dl_device[0]), int(dl_device[1]))
        return _C._to_dlpack(
            self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self: Any) -> tuple[Any, int]:
        if not self.is_cpu:
            raise BufferError(f"__dlpack_device__: no DLPack device stands for {self.device}")
        return DLDeviceType.kDLCPU, 0

    def untyped_storage(self: Any) -> Any:
        """Return the bytes that this tensor shares with its views.

        Returns
        -------
        UntypedStorage
            All bytes, whatever the tensor's offset and shape.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.arange(4)
        >>> x[2:].untyped_storage().nbytes()
        32
        """
        storage = _C._untyped_storage(self)
        return _storages.setdefault(storage._cdata, storage)

    def share_memory_(self: Any) -> Any:
        """Move the memory, with all views of it, to where other processes can map it.

        Returns
        -------
        Tensor
            The tensor itself; what another process writes to it is seen.

        Raises
        ------
        RuntimeError
            NumPy or another library knows the memory: share a ``clone()``.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.ones(3)
        >>> x.share_memory_().is_shared()
        True
        """
        if not self.is_cpu:
            return self  # memory of a GPU is copied to whom it is sent
        from ..multiprocessing._shared import share

        share(self.untyped_storage())
        return self

    def is_shared(self: Any) -> bool:
        """Return whether other processes can map the memory.

        Returns
        -------
        bool
            After `share_memory_`.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(3).is_shared()
        False
        """
        return self.untyped_storage().is_shared()

    def storage(self: Any) -> Any:
        """Return the memory as elements of this tensor's type.

        Returns
        -------
        TypedStorage
            All elements, whatever the tensor's offset and shape.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.arange(4)[2:].storage().tolist()
        [0, 1, 2, 3]
        """
        from .. import storage

        storage._warn_typed_storage_removal()
        return storage._of(self)

    def _typed_storage(self: Any) -> Any:
        from .. import storage

        return storage._of(self)

    def _fix_weakref(self: Any) -> None:
        """Do nothing: a tensor is one object as long as it lives."""

    def set_(
        self: Any,
        source: Any = None,
        storage_offset: int = 0,
        size: Any = None,
        stride: Any = None,
    ) -> Any:
        """Put this tensor on the memory of a storage or of another tensor.

        Parameters
        ----------
        source : Tensor or storage, optional
            What to lie on; nothing gives a tensor without elements.
        storage_offset : int, default 0
            The first element.
        size : sequence of int, optional
            The new shape; for a storage by default one dimension of all elements.
        stride : sequence of int, optional
            The new strides; by default those of a contiguous tensor.

        Returns
        -------
        Tensor
            The tensor itself.

        Raises
        ------
        RuntimeError
            The dtypes differ, or the shape does not fit.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.arange(6)
        >>> torch.empty(0, dtype=torch.int64).set_(x.untyped_storage(), 1, (2, 2), (2, 1))
        tensor([[1, 2],
                [3, 4]])
        """
        size = (size,) if isinstance(size, int) else size
        stride = (stride,) if isinstance(stride, int) else stride
        _C._set_(self, source, storage_offset, size, stride)
        return self

    def resize_(self: Any, *sizes: Any, memory_format: Any = None) -> Any:
        """Change the shape in place; new elements are uninitialised.

        Elements keep their order in memory.

        Parameters
        ----------
        *sizes : int or one sequence of int
            The new shape.
        memory_format : memory_format, optional
            The order of the elements in memory.

        Returns
        -------
        Tensor
            The tensor itself.

        Raises
        ------
        RuntimeError
            The tensor requires grad, or its memory cannot grow.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
        """
        if len(sizes) == 1 and not isinstance(sizes[0], int):
            (sizes,) = sizes
        _C._resize_(self, [operator.index(n) for n in sizes], memory_format)
        return self

    def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
        """Change the shape in place to that of another tensor.

        Parameters
        ----------
        the_template : Tensor
            Of the shape wanted.
        memory_format : memory_format, optional
            The order of the elements in memory.

        Returns
        -------
        Tensor
            The tensor itself.

        Raises
        ------
        RuntimeError
            The tensor requires grad, or its memory cannot grow.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.arange(6).resize_as_(torch.empty(2, 2))
        tensor([[0, 1],
                [2, 3]])
        """
        if self.is_sparse:
            dims = the_template.sparse_dim(), the_template.dense_dim()
            return self.sparse_resize_(tuple(the_template.shape), *dims)
        return self.resize_(tuple(the_template.shape), memory_format=memory_format)

    def new_tensor(
        self: Any,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        layout: Any = None,
    ) -> Any:
        """Return `data` as a tensor of this one's type and device unless others are named.

        Parameters
        ----------
        data : number, sequence, array or Tensor
            What the tensor holds; it is copied.
        dtype : dtype, optional
            Another type.
        device : device, optional
            Another device.
        requires_grad : bool, default False
            Whether to record what is done with the result.
        pin_memory, layout
            Have no effect.

        Returns
        -------
        Tensor
            A leaf with memory of its own.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.zeros(1, dtype=torch.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=torch.float64)
        """
        return _C.tensor(
            data,
            dtype=dtype or self.dtype,
            device=device or self.device,
            requires_grad=requires_grad,
        )

    def new(self: Any, *args: Any, device: Any = None, size: Any = None) -> Any:
        """Make a tensor of this one's type as the old constructors do.

        Parameters
        ----------
        *args : int, sequence, Tensor or storage
            Sizes, or what the tensor holds.
        device : device, optional
            Another device.
        size : sequence of int, optional
            Sizes by name.

        Returns
        -------
        Tensor
            Uninitialised where only sizes are given.

        Raises
        ------
        TypeError
            The arguments are of another kind.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.zeros(1, dtype=torch.int32).new([1, 2])
        tensor([1, 2], dtype=torch.int32)
        """
        if self._is_any_sparse:
            from ..sparse._old import made

            return made(*(args if size is None else (size,)), dtype=self.dtype)
        _check_legacy_device(device, self.device.type)
        return _legacy_new(*args, dtype=self.dtype, device=device or self.device, size=size)

    def type(self: Any, dtype: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        """Return the name of the type, or this tensor converted to another.

        Parameters
        ----------
        dtype : dtype, str or type, optional
            What to convert to; also a class such as `torch.DoubleTensor`, or its name.
        non_blocking : bool, default False
            Has no effect.

        Returns
        -------
        str or Tensor
            The name without `dtype`; else the converted tensor, itself where it has the type.

        Raises
        ------
        ValueError
            There is no such type.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.zeros(2)
        >>> x.type(), x.type(torch.int32)
        ('torch.FloatTensor', tensor([0, 0], dtype=torch.int32))
        """
        if dtype is None:
            place = "" if self.is_cpu else f"{self.device.type}."
            if self._is_any_sparse:
                place += "sparse." if self.is_sparse else f"{str(self.layout)[len('torch.') :]}."
            return f"torch.{place}{_scalar_name(self.dtype)}Tensor"
        where, kind = _placed_type(dtype)
        if where is None:
            return self.to(kind, non_blocking=non_blocking)
        return self.to(self.device if self._on(where) else where, kind, non_blocking=non_blocking)

    def __copy__(self: Any) -> Any:
        # A shallow copy is another handle on the same data.
        return _rebuilt(type(self), self.detach(), self.requires_grad, _get_obj_state(self))

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the "
                "deepcopy protocol at the moment. Call .detach() first to copy the values."
            )
        if id(self) in memo:
            return memo[id(self)]
        if self._is_any_sparse:
            copied = _as_class(type(self), self.detach().clone(), self.requires_grad)
            memo[id(self)] = copied
            if self.grad is not None:
                copied.grad = deepcopy(self.grad, memo)
            copied.__dict__.update(deepcopy(self.__dict__, memo))
            return copied
        wraps = type(self) is not _C.Tensor and self.is_meta
        if wraps or type(self).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
            # What it holds is the class's to copy.
            copied = (self if wraps else self.detach()).clone()
            if type(copied) is not type(self):
                raise RuntimeError(
                    "The default implementation of __deepcopy__() for wrapper subclasses only "
                    "works for subclass types that properly implement clone(): "
                    f"{type(self).__name__}.clone() gave a {type(copied).__name__}"
                )
            memo[id(self)] = copied.requires_grad_(self.requires_grad)
            if self.grad is not None:
                copied.grad = deepcopy(self.grad, memo)
            missing = {k: v for k, v in _attributes(self).items() if not hasattr(copied, k)}
            _set_obj_state(copied, deepcopy(missing, memo))
            return copied
        # Tensors that share memory go on sharing it in the copy.
        storage = deepcopy(self.untyped_storage(), memo)
        data = _C.empty((0,), dtype=self.dtype, device=self.device)
        data.set_(storage, self.storage_offset(), tuple(self.shape), self.stride())
        copied = _as_class(type(self), data, self.requires_grad)
        memo[id(self)] = copied
        if self.grad is not None:
            copied.grad = deepcopy(self.grad, memo)
        _set_obj_state(copied, deepcopy(_attributes(self), memo))
        return copied

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        if self.is_meta:
            kept = (type(self), str(self.dtype), tuple(self.shape), self.stride())
            return _unpickled_meta, (*kept, self.requires_grad, _get_obj_state(self))
        if self._is_any_sparse:
            x = self.detach().cpu()
            known = x.is_coalesced() if x.is_sparse else None
            parts = (x.layout, sparse_parts(x)[1], tuple(x.shape), known)
            return _unpickled_sparse, (type(self), parts, self.requires_grad, _get_obj_state(self))
        if _wraps(self):
            from .._utils import _rebuild_from_type_v2, _rebuild_wrapper_subclass

            made = (_rebuild_wrapper_subclass, type(self), _wrapper_parts(self))
            return _rebuild_from_type_v2, (*made, _get_obj_state(self))
        values = self.detach().cpu().contiguous()
        raw = values.reshape(-1).view(_C.uint8).numpy().tobytes() if values.numel() else b""
        state = (type(self), raw, str(self.dtype), tuple(self.shape), self.requires_grad)
        place = (str(self.device),) if self._is_gpu else ()
        return _unpickled, (*state, _get_obj_state(self), *place)

    def backward(
        self: Any,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to the ``.grad`` of the leaves it came from.

        Parameters
        ----------
        gradient : Tensor, optional
            What enters here; 1 if not given, for a tensor of one element.
        retain_graph, create_graph, inputs
            As in `autograd.backward`.

        Raises
        ------
        RuntimeError
            The tensor has more than one element and no gradient, or was not recorded, or the graph
            has been freed by an earlier backward.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        if gradient is None and inputs is None and not create_graph:
            try:
                done = _C._backward_from(self, bool(retain_graph))
            except BaseException:
                if _callbacks.queued:
                    _callbacks.drop()
                raise
            if done:
                if _callbacks.queued:
                    _callbacks.finish()
                return
        from .. import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


# Attributes that are other tensors: they keep their class.
_AS_THEY_ARE = {getattr(_C.Tensor, name).__get__ for name in ("_base", "grad")}


def _of_class(result: Any, cls: Any) -> Any:
    """Give tensors in a result the class of an argument."""
    if isinstance(result, _C.Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if type(result) in (tuple, list):
        return type(result)(_of_class(item, cls) for item in result)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(tuple(_of_class(item, cls) for item in result))
    return result


class DLDeviceType(enum.IntEnum):
    """The device types of DLPack that occur here."""

    kDLCPU = 1  # noqa: N815  (DLPack's name)


def attach(tensor_class: Any) -> None:
    """Give the methods above to `tensor_class`."""
    for name, value in vars(_Methods).items():
        if (
            callable(value)
            or isinstance(value, (classmethod, staticmethod))
            or name == "__array_priority__"
        ):
            setattr(tensor_class, name, value)
    # Two names of one operator.
    tensor_class.__div__ = tensor_class.__truediv__
    tensor_class.__idiv__ = tensor_class.__itruediv__


def _convert(ret: Any, cls: type) -> Any:
    """Return tensors in a result as a class of tensors."""
    if cls is _C.Tensor:
        return ret
    if isinstance(ret, _C.Tensor) and not isinstance(ret, cls):
        return ret.as_subclass(cls)
    if isinstance(ret, (tuple, list)):
        values = (_convert(r, cls) for r in ret)
        return type(ret)(*values) if hasattr(ret, "_fields") else type(ret)(values)
    return ret


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    """Make a tensor of a subclass, or one with attributes of its own, as a file tells it."""
    from .._utils import _rebuild_from_type_v2 as rebuild

    return rebuild(func, new_type, args, state)
