"""``torch.autocast``: operators that choose the type they compute in."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytensorlib as pt

from .. import _C, _gpu
from . import _rules

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

# Kinds of device that have a state, and the type that is taken where none is given.
_DTYPES = {"cpu": pt.bfloat16, "wgpu": pt.float16}
_DTYPES |= dict.fromkeys("cuda mps xpu ipu mtia privateuseone".split(), pt.float16)
_DTYPES |= dict.fromkeys("hpu maia xla".split(), pt.bfloat16)
_LOW = (pt.bfloat16, pt.float16)
_ON_CPU, _ON_GPU = _rules.rules("cpu"), _rules.rules("gpu")


def _here() -> tuple[str, str]:
    """Return the kinds of device whose operators choose, by their names."""
    return (_gpu.name(), "cpu")


class _State(threading.local):
    """The autocast state of a thread."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes = dict(_DTYPES)
        self.caches, self.nesting = True, 0
        self.cache: dict[tuple[int, Any, bool], tuple[Any, int, Any]] = {}


_state = _State()


class _Mode:
    """Sees every call of a function of tensors on a thread, and casts its arguments."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, kwargs = cast_arguments(func, args, kwargs or {})
        return func(*args, **kwargs)


_MODE = _Mode()


def casts() -> tuple[Any, ...]:
    """Return which kinds of device have autocast on, and their types."""
    return tuple((d, _state.dtypes[d]) for d in _here() if _state.enabled.get(d))


def cast_arguments(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a function as autocast hands them over."""
    for device in _here():
        if _state.enabled.get(device):
            rule = (_ON_CPU if device == "cpu" else _ON_GPU)(func, args)
            if rule is not None and kwargs.get("out") is None:
                args, kwargs = _ruled(rule, device, func, args, kwargs)
    return args, kwargs


@contextmanager
def cast_anew() -> Iterator[None]:
    """Keep no cast of a parameter for a block."""
    before, _state.caches = _state.caches, False
    try:
        yield
    finally:
        _state.caches = before


def _on(value: Any, device: str) -> Iterator[Any]:
    """Yield the tensors of a kind of device that may be cast."""
    if isinstance(value, pt.Tensor):
        dtype = value.dtype
        if dtype.is_floating_point and dtype != pt.float64 and value.device.type == device:
            yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _on(item, device)


def _ruled(
    rule: int, device: str, func: Any, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a function as its rule wants them."""
    found = list(_on([*args, *kwargs.values()], device))
    if not found:
        return args, kwargs
    if rule == _rules.REFUSED:
        raise RuntimeError(
            f"torch.autocast: {func.__name__} is unsafe on {device!r}, as logarithms of numbers "
            "that were rounded to few bits are not finite; take "
            "torch.nn.functional.binary_cross_entropy_with_logits (torch.nn.BCEWithLogitsLoss) of "
            "what is before the sigmoid, or call it under torch.autocast(..., enabled=False)"
        )
    dtype = pt.float32
    if rule == _rules.LOWER:
        dtype = _state.dtypes[device]
    elif rule == _rules.WIDEST:
        if len({t.dtype for t in found}) == 1:
            return args, kwargs
    elif rule == _rules.STATE:
        # What a recurrent layer passes on keeps its type, and the layer computes in it.
        dtype = next(_on(args[1:3], device), found[0]).dtype
    elif rule == _rules.SINGLE_UNLESS_TOLD:
        if any(isinstance(value, pt.dtype) for value in (*args, kwargs.get("dtype"))):
            return args, kwargs
    cast = functools.partial(_converted, device=device, dtype=dtype)
    return tuple(map(cast, args)), {name: cast(value) for name, value in kwargs.items()}


def _converted(value: Any, device: str, dtype: Any) -> Any:
    """Return a value with its tensors of a kind of device cast."""
    if isinstance(value, pt.Tensor):
        may = value.dtype != dtype and any(True for _ in _on(value, device))
        return _converted_tensor(value, dtype) if may else value
    if type(value) in (tuple, list):
        return type(value)(_converted(item, device, dtype) for item in value)
    return value


def _converted_tensor(tensor: Any, dtype: Any) -> Any:
    """Cast a tensor; of a parameter the cast is kept, so that it is made once."""
    keeps = _state.caches and _state.nesting and dtype in _LOW and tensor.dtype == pt.float32
    if not (keeps and tensor.requires_grad and tensor.is_leaf and not tensor._is_view()):
        return tensor.to(dtype)
    # A cast that was made without recording has no gradient, and one from before a parameter was
    # written to is out of date.
    key = (id(tensor), dtype, pt.is_grad_enabled())
    kept = _state.cache.get(key)
    if kept is None or kept[1] != tensor._version:
        kept = _state.cache[key] = (tensor, tensor._version, tensor.to(dtype))
    return kept[2]


def _enabled() -> bool:
    """Tell whether anything is cast on this thread."""
    return any(_state.enabled.get(device) for device in _here())


def _install() -> None:
    """Let the mode see calls while a device has autocast on, after all modes of the program."""
    wanted = _enabled()
    modes = _C._torch_function_modes(True)
    if wanted == any(mode is _MODE for mode in modes):
        return
    taken = [_C._take_torch_function_mode() for _ in modes]
    if wanted:
        _C._push_torch_function_mode(_MODE, True)
    for mode, inner in reversed(taken):
        if mode is not _MODE:
            _C._push_torch_function_mode(mode, inner)


def _known(device_type: Any) -> str:
    """Return a kind of device that has a state."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DTYPES:
        raise RuntimeError(
            f"torch.autocast: unsupported autocast device_type {device_type!r}; take one of "
            f"{', '.join(_DTYPES)}"
        )
    return _gpu.name() if device_type == _gpu.OWN else device_type


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` takes a kind of device.

    Parameters
    ----------
    device_type : str
        Such as "cpu" or "wgpu".

    Returns
    -------
    bool
        True also for "cuda" and others that are not here, where it changes nothing.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta")
    (True, False)
    """
    return device_type in _DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether operators on a kind of device choose the type they compute in.

    Parameters
    ----------
    device_type : str
        Such as "cpu" or "wgpu".

    Returns
    -------
    bool
        Of this thread.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """
    return _state.enabled.get(_known(device_type), False)


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turn autocast on or off on this thread; `autocast` does it for a block.

    Parameters
    ----------
    device_type : str
        Such as "cpu" or "wgpu"; with one argument that argument is `enabled`, of "cuda".
    enabled : bool
        Whether operators choose.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_enabled("cpu", True)
    >>> torch.is_autocast_enabled("cpu")
    True
    >>> torch.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    _state.enabled[_known(device_type)] = bool(enabled)
    _install()


def get_autocast_dtype(device_type: str) -> pt.dtype:
    """Return the type of products under autocast.

    Parameters
    ----------
    device_type : str
        Such as "cpu" or "wgpu".

    Returns
    -------
    dtype
        At first bfloat16 on the CPU and float16 on GPUs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("wgpu")
    (torch.bfloat16, torch.float16)
    """
    return _state.dtypes[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype: pt.dtype) -> None:
    """Set the type of products under autocast on this thread.

    Parameters
    ----------
    device_type : str
        Such as "cpu" or "wgpu".
    dtype : dtype
        float16 or bfloat16.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_dtype("cpu", torch.float16)
    >>> torch.get_autocast_dtype("cpu")
    torch.float16
    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    if not isinstance(dtype, pt.dtype):
        raise TypeError(f"set_autocast_dtype: dtype must be a torch.dtype, not {type(dtype)}")
    _state.dtypes[_known(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Return whether casts of parameters are kept until the outermost `autocast` ends.

    Returns
    -------
    bool
        At first True.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _state.caches


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether casts of parameters are kept until the outermost `autocast` ends.

    Parameters
    ----------
    enabled : bool
        Of this thread.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_cache_enabled(True)
    """
    _state.caches = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of parameters of this thread.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.clear_autocast_cache()
    """
    _state.cache.clear()


def autocast_increment_nesting() -> int:
    """Count one more `autocast` block on this thread.

    Returns
    -------
    int
        How many there are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Count one `autocast` block less on this thread.

    Returns
    -------
    int
        How many there are.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    (1, 0)
    """
    _state.nesting -= 1
    return _state.nesting


def is_autocast_cpu_enabled() -> bool:
    """As `torch.is_autocast_enabled` of "cpu".

    Returns
    -------
    bool
        Of this thread.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_autocast_cpu_enabled()
    False
    """
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """As `torch.set_autocast_enabled` of "cpu".

    Parameters
    ----------
    enabled : bool
        Whether operators choose.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> pt.dtype:
    """As `torch.get_autocast_dtype` of "cpu".

    Returns
    -------
    dtype
        At first bfloat16.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_autocast_cpu_dtype()
    torch.bfloat16
    """
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: pt.dtype) -> None:
    """As `torch.set_autocast_dtype` of "cpu".

    Parameters
    ----------
    dtype : dtype
        float16 or bfloat16.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_cpu_dtype(torch.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> pt.dtype:
    """As `torch.get_autocast_dtype` of "cuda".

    Returns
    -------
    dtype
        At first float16.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_autocast_gpu_dtype()
    torch.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: pt.dtype) -> None:
    """As `torch.set_autocast_dtype` of "cuda".

    Parameters
    ----------
    dtype : dtype
        float16 or bfloat16.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_autocast_gpu_dtype(torch.float16)
    """
    set_autocast_dtype("cuda", dtype)


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs in an `autocast` block.

    Parameters
    ----------
    autocast_instance : autocast
        The block.
    func : callable
        What to run in it.

    Returns
    -------
    callable
        Takes what `func` takes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.amp.autocast_mode import autocast_decorator
    >>> product = autocast_decorator(torch.autocast("cpu"), torch.mm)
    >>> product(torch.ones(1, 2), torch.ones(2, 1))
    tensor([[2.]], dtype=torch.bfloat16)
    """

    @functools.wraps(func)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


class autocast:
    """A block, or a decorator, in which operators choose the type they compute in.

    Products (`mm`, `nn.functional.linear`, convolutions, attention ...) cast their tensors to
    `dtype`; operators that would lose too much there, such as losses, cast theirs to float32;
    `cat` and a few more take the widest type that they get; all others leave everything as it is.
    Only tensors of the device and of float16, bfloat16 or float32 are cast. In-place forms, and
    calls with ``out``, cast nothing. Gradients have the types of what they are gradients of. Sums
    within a product are float32; `pytensorlib.wgpu` says where GPUs have tensor cores make them.

    Parameters
    ----------
    device_type : str
        "cpu" or "wgpu"; with that of a device that is not here, such as "cuda", it warns and
        changes nothing.
    dtype : dtype, optional
        float16 or bfloat16; `torch.get_autocast_dtype` by default.
    enabled : bool, default True
        False makes a block inside another one in which nothing is cast.
    cache_enabled : bool, optional
        Whether the cast of a parameter is kept until the outermost block ends. A parameter that
        was written to meanwhile is cast anew.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(2, 2)
    >>> with torch.autocast("cpu"):
    ...     y = x @ x
    ...     with torch.autocast("cpu", enabled=False):
    ...         z = x @ x
    >>> y.dtype, z.dtype
    (torch.bfloat16, torch.float32)

    Notes
    -----
    Micikevicius et al. 2018, arXiv:1710.03740.
    """

    def __init__(
        self,
        device_type: str,
        dtype: pt.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = _state.caches if cache_enabled is None else cache_enabled
        if enabled and not _gpu.is_here(self.device):
            warnings.warn(
                f"torch.autocast: there is no device {device_type!r}, so it is disabled; GPUs of "
                f"every maker are device {_gpu.name()!r}",
                stacklevel=2,
            )
            enabled = False
        elif enabled and self.fast_dtype not in _LOW:
            warnings.warn(
                f"torch.autocast: products are computed in torch.bfloat16 or torch.float16, not "
                f"in {self.fast_dtype}, so it is disabled",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, Any, bool]] = []

    def __enter__(self) -> autocast:
        device = self.device
        was = (_state.enabled.get(device, False), _state.dtypes[device], _state.caches)
        self._before.append(was)
        _state.dtypes[device], _state.caches = self.fast_dtype, self._cache_enabled
        autocast_increment_nesting()
        set_autocast_enabled(device, self._enabled)
        return self

    def __exit__(self, *exc: Any) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        enabled, _state.dtypes[self.device], _state.caches = self._before.pop()
        set_autocast_enabled(self.device, enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"torch.autocast(...)(func): func must be callable, got {type(func).__name__}; a "
                "block begins with `with torch.autocast(...):`"
            )
        return autocast_decorator(self, func)


def _saved() -> Callable[[], Any]:
    """Return what makes a block with the autocast of now, on whatever thread."""
    enabled, dtypes, caches = dict(_state.enabled), dict(_state.dtypes), _state.caches

    @contextmanager
    def block() -> Iterator[None]:
        before = (_state.enabled, _state.dtypes, _state.caches)
        _state.enabled, _state.dtypes, _state.caches = dict(enabled), dict(dtypes), caches
        autocast_increment_nesting()
        _install()
        try:
            yield
        finally:
            if autocast_decrement_nesting() == 0:
                clear_autocast_cache()
            _state.enabled, _state.dtypes, _state.caches = before
            _install()

    return block


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Cast the tensors in what a program hands over."""
    if isinstance(value, pt.Tensor):
        return value.to(dtype) if any(True for _ in _on(value, device_type)) else value
    if isinstance(value, Mapping):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        items = [_cast(item, device_type, dtype) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """Decorate the `forward` of a `torch.autograd.Function` for autocast.

    Parameters
    ----------
    fwd : callable
        ``forward(ctx, *args)``.
    device_type : str
        Such as "cpu" or "wgpu".
    cast_inputs : dtype, optional
        In an `autocast` block tensors are cast to it, and `forward` runs with autocast off.
        Without it `forward` runs as any other code in the block.

    Returns
    -------
    callable
        The decorated function, or without `fwd` the decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return 2 * grad * ctx.saved_tensors[0]
    >>> with torch.autocast("cpu"):
    ...     Square.apply(torch.ones(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    _known(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, enabled = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = _cast((args, kwargs), device_type, cast_inputs)
            return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate the `backward` of a `torch.autograd.Function`: its autocast is that of `forward`.

    Parameters
    ----------
    bwd : callable
        ``backward(ctx, *grads)``.
    device_type : str
        As of `custom_fwd`, which decorates `forward`.

    Returns
    -------
    callable
        The decorated function, or without `bwd` the decorator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.amp.custom_bwd(device_type="cpu")
    ... def backward(ctx, grad):
    ...     return 2 * grad
    """
    _known(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward
