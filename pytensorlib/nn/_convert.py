"""The part of ``Module`` that moves and converts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytensorlib as pt

from .. import Tensor
from .parameter import Parameter, is_lazy

M = TypeVar("M", bound="Convertible")
_answers_nothing: Any = Tensor.__torch_dispatch__  # type: ignore[attr-defined]


class conversion:
    """What `torch.__future__` sets.

    Whether converted parameters are new objects, and whether they are exchanged with new ones.
    """

    overwrite = False
    swap = False


def _exchange(module: Any, name: str, param: Any, moved: Any, moved_grad: Any) -> bool:
    """Make a parameter, and its gradient, all of what others are; False where it must not be."""
    grad, param.grad = param.grad, None
    try:
        pt.utils.swap_tensors(param, Parameter(moved, param.requires_grad))
    except RuntimeError as e:
        param.grad = grad
        if not conversion.swap:
            return False
        raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from e
    if grad is not None:
        moved_grad.requires_grad_(grad.requires_grad)
        try:
            pt.utils.swap_tensors(grad, moved_grad)
        except RuntimeError as e:
            raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}.grad") from e
        param.grad = grad
    return True


_FORMS = "".join(
    f"\n * ({form}bool non_blocking = False, *, torch.memory_format memory_format = None)"
    for form in (
        "torch.device device = None, torch.dtype dtype = None, ",
        "torch.dtype dtype, ",
        "Tensor tensor, ",
    )
)
_PYTHON_TYPES = {float: "float64", complex: "complex128", int: "int64", bool: "bool"}
_KINDS: dict[str, tuple] = {
    "device": (str, int, pt.device),
    "dtype": (pt.dtype,),
    "tensor": (Tensor,),
    "non_blocking": (bool,),
    "copy": (bool,),
    "memory_format": (pt.memory_format,),
}


def _kind(value: Any) -> str:
    """Return how an error calls the type of an argument."""
    if isinstance(value, (pt.device, pt.dtype, pt.memory_format)):
        return f"torch.{type(value).__name__}"
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _parse_to(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Device, dtype, non_blocking and memory format out of the arguments of ``Module.to``."""
    first = args[0] if args else None
    if isinstance(first, Tensor):
        names = ["tensor", "non_blocking", "copy"]
    elif isinstance(first, (pt.dtype, type)):
        names = ["dtype", "non_blocking", "copy"]
    else:
        names = ["device", "dtype", "non_blocking", "copy"]
    given = dict(zip(names, args, strict=False))
    sound = len(args) <= len(names) and not given.keys() & kwargs.keys() and bool(args or kwargs)
    given = {
        name: getattr(pt, _PYTHON_TYPES.get(v, ""), v)
        if name == "dtype" and isinstance(v, type)
        else v
        for name, v in (given | kwargs).items()
    }
    for name, value in given.items():
        kinds = _KINDS.get(name, ())
        off = isinstance(value, bool) and bool not in kinds
        sound = sound and bool(kinds) and (value is None or (isinstance(value, kinds) and not off))
    if not sound:
        got = [_kind(v) for v in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()]
        raise TypeError(
            "to() received an invalid combination of arguments - got "
            f"({', '.join(got)}), but expected one of:{_FORMS}"
        )
    if given.get("copy") is not None:
        raise RuntimeError(
            ".to() does not accept copy argument: a module is moved and converted in place. "
            "copy.deepcopy(module) makes another one."
        )
    device, dtype, tensor = (given.get(name) for name in ("device", "dtype", "tensor"))
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    device = None if device is None else pt.device(device)
    return device, dtype, given.get("non_blocking") or False, given.get("memory_format")


class Convertible:
    """Devices and element types of all parameters and buffers at once."""

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replace every parameter, gradient and buffer by ``fn`` of it."""
        own: Any = self
        if recurse:
            for module in own.children():
                module._apply(fn)
        for name, param in own._parameters.items():
            if param is None:
                continue
            grad = None if is_lazy(param) else param.grad
            with pt.no_grad():
                moved = fn(param)
                moved_grad = None if grad is None else fn(grad)
            wraps, wrapped = (
                type(t).__torch_dispatch__ is not _answers_nothing for t in (param, moved)
            )
            # A tensor cannot gain or lose its storage, nor change its class.
            reclassed = (wraps or wrapped) and type(moved) is not type(param)
            swaps = conversion.swap and moved is not param and not is_lazy(param)
            if (reclassed or swaps) and _exchange(own, name, param, moved, moved_grad):
                continue
            if reclassed or moved.is_meta != param.is_meta or conversion.overwrite:
                own._parameters[name] = replacement = Parameter(moved, param.requires_grad)
                replacement.grad = moved_grad
                continue
            if moved_grad is not None:
                param.grad = None
            param.data = moved
            if wraps:
                vars(param).update(vars(moved))  # the tensors that it is made of
            if moved_grad is not None:
                param.grad = moved_grad.requires_grad_(grad.requires_grad)  # type: ignore[union-attr]
        for name, buffer in own._buffers.items():
            if buffer is not None:
                own._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Move to a device, and convert floating-point and complex values to a dtype, in place.

        ``to(device, dtype, non_blocking)``, ``to(dtype)`` or ``to(tensor)``, whose device and dtype
        count; also by name, and ``memory_format`` for parameters of 4 or 5 dimensions. Optimizers
        made before still have the parameters: they are the same objects.

        Parameters
        ----------
        *args, **kwargs
            As above.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        TypeError
            The dtype is no floating-point or complex one, or arguments do not fit.
        NotImplementedError
            A parameter is on ``meta``, where there is nothing to copy: see `to_empty`.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).to(torch.float64).weight.dtype
        torch.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            options = {} if device is None else {"device": device}
            if dtype is not None and (t.is_floating_point() or t.is_complex()):
                options["dtype"] = dtype
            if memory_format is not None and not is_lazy(t) and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            if not options:
                return t
            if t.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                    "module from meta to a different device."
                )
            return t.to(**options, non_blocking=non_blocking)

        return self._apply(convert)

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Move to a device without copying the values; from ``meta``, the only way.

        Parameters
        ----------
        device : device or str
            Where to.
        recurse : bool, default True
            Submodules too.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).to_empty(device="cpu").weight.shape
        torch.Size([2, 3])
        """
        return self._apply(lambda t: pt.empty_like(t, device=device), recurse=recurse)

    def cpu(self: M) -> M:
        """Move all parameters and buffers to the CPU.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).cpu().weight.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.cpu())

    def cuda(self: M, device: Any = None) -> M:
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers, those of integers too.

        Parameters
        ----------
        dst_type : dtype or str
            To this type.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).type(torch.float64).weight.dtype
        torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def _to_float(self: M, dtype: Any) -> M:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self: M) -> M:
        """Convert floating-point values to float32.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).double().float().weight.dtype
        torch.float32
        """
        return self._to_float(pt.float32)

    def double(self: M) -> M:
        """Convert floating-point values to float64.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).double().weight.dtype
        torch.float64
        """
        return self._to_float(pt.float64)

    def half(self: M) -> M:
        """Convert floating-point values to float16.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).half().weight.dtype
        torch.float16
        """
        return self._to_float(pt.float16)

    def bfloat16(self: M) -> M:
        """Convert floating-point values to bfloat16.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> from pytensorlib import nn
        >>> nn.Linear(3, 2).bfloat16().weight.dtype
        torch.bfloat16
        """
        return self._to_float(pt.bfloat16)

    def share_memory(self: M) -> M:
        """Move the storages to memory that other processes can see."""
        return self._apply(lambda t: t.share_memory_())
