"""Dual numbers: tensors that carry a tangent through what is computed of them.

The core follows tangents: a level is an interpreter of what is computed while it is open. Here are
the public functions, and functions with a derivative of their own.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from .. import _C
from .function import _apply_below, _check_transformed, _default_setup_context, _watching

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent.

    Parameters
    ----------
    primal : Tensor
        The tensor.
    tangent : Tensor or None
        Of the same shape; None where the tensor depends on no dual.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     forward_ad.unpack_dual(torch.ones(2)).tangent is None
    True
    """

    primal: Any
    tangent: Any


class _Level:
    """A level of forward mode: while it is in force, tensors of its own carry tangents along.

    `transform` says that a function is transformed: programs' own functions must allow for that.
    """

    def __init__(self, transform: bool = False) -> None:
        self.core = _C._Forward()
        self.transform = transform

    def __enter__(self) -> Any:
        _watching.stack.append(self)
        self.core.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.core.stop()
        _watching.stack.remove(self)

    def leave(self, x: Any) -> tuple[Any, Any]:
        """Return what a value is below the level, and its tangent or None."""
        return self.core.leave(x) if isinstance(x, _C.Tensor) else (x, None)

    def apply(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function with a derivative of its own: its `jvp` gives the tangents."""
        if self.transform:
            _check_transformed(cls)
        if not (_is_fwd_grad_enabled() and any(self.leave(a)[1] is not None for a in args)):
            return _apply_below(self, cls, args, kwargs)
        if cls.setup_context is _default_setup_context:
            return self.beside(cls, args, kwargs)
        recording = _C.is_grad_enabled()
        if recording and any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            # Within what is followed it is a function of tensors with tangents.
            return _C._function_apply(_of_duals(cls, self, recording), *args, **kwargs)
        return self.lower(cls, args, kwargs)

    def lower(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of primals, and its `jvp` of tangents, below the level."""
        self.core.stop()
        try:
            pairs = [self.leave(a) for a in args]
            primals = tuple(p for p, _ in pairs)
            y = _apply_below(self, cls, primals, kwargs)
            ctx = cls._backward_cls()
            cls.setup_context(ctx, primals, y)
            found = _tangents(cls, ctx, pairs)
            outputs = y if isinstance(y, tuple) else (y,)
            _check_count(cls, outputs, found)
            along = [t for _, t in pairs]
            made = []
            for o, product in zip(outputs, found, strict=True):
                if isinstance(o, _C.Tensor):
                    place = next((i for i, p in enumerate(primals) if p is o), None)
                    _check_memory(o, product, primals, along)
                    o = self.core.enter(o, product) if place is None else args[place]
                made.append(o)
            return tuple(made) if isinstance(y, tuple) else made[0]
        finally:
            self.core.start()

    def beside(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function whose `forward` fills its context; put tangents beside its outputs."""
        seen: list[Any] = []

        def remember(ctx: Any) -> None:
            seen.append(ctx)

        context = type(
            cls._backward_cls.__name__,
            (cls._backward_cls,),
            {"__init__": remember, "_forward_cls": cls},
        )
        own = type(cls)(cls.__name__, (cls,), {})
        own._backward_cls = context
        pairs = [self.leave(a) for a in args]
        with _set_fwd_grad_enabled(False):
            y = _apply_below(self, own, args, kwargs)
            found = _tangents(cls, seen[0], pairs)
        outputs = y if isinstance(y, tuple) else (y,)
        _check_count(cls, outputs, found)
        along = [t for _, t in pairs]
        for o, product in zip(outputs, found, strict=True):
            if isinstance(o, _C.Tensor) and product is not None:
                product = self.leave(product)[0]
                _check_memory(o, product, args, along)
                if all(o is not a for a in args):
                    self.core.give(o, product)
        return y


def _tangents(cls: Any, ctx: Any, pairs: list[tuple[Any, Any]]) -> Any:
    """Return what the `jvp` of a function gives, for values and their tangents."""
    given = [
        _C.zeros_like(a) if t is None and isinstance(a, _C.Tensor) and ctx.materialize_grads else t
        for a, t in pairs
    ]
    ctx._for_forward = getattr(ctx, "saved_for_forward", None)
    try:
        found = cls.jvp(ctx, *given)
    finally:
        ctx._for_forward = None
    return found if isinstance(found, (tuple, list)) else (found,)


def _of_duals(cls: Any, level: _Level, recording: bool) -> Any:
    """Return a function whose `forward` applies another one below a level."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        with _C._Mode(recording):
            return level.lower(cls, args, kwargs)

    return type(cls)(cls.__name__, (cls,), {"forward": staticmethod(forward)})


def _check_count(cls: Any, outputs: Any, found: Any) -> None:
    """Refuse another number of tangents than of outputs, and what is no tangent."""
    if len(found) != len(outputs):
        raise RuntimeError(
            f"{cls.__name__}.jvp returned an incorrect number of gradients (expected "
            f"{len(outputs)}, got {len(found)})"
        )
    for i, (o, product) in enumerate(zip(outputs, found, strict=True)):
        if product is None or not isinstance(o, _C.Tensor):
            continue
        if not isinstance(product, _C.Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(product).__name__}) for grad output {i}."
            )
        _check_shape(o, product)


def _check_memory(o: Any, product: Any, given: Any, along: Any) -> None:
    """Refuse a tangent that does not lie to those of the inputs as its output lies to these."""
    if product is None:
        return
    for a, tangent in zip(given, along, strict=True):
        if o is a:
            if tangent is None or product.data_ptr() != tangent.data_ptr():
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients "
                    "inplace. If the forward is modifying an input inplace, then the jvp "
                    "function must modify the corresponding gradient inplace."
                )
            return
    if _shares(o, [a for a in given if isinstance(a, _C.Tensor)]) and not product._is_view():
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the "
            "jvp is not returning a view."
        )


def _shares(x: Any, others: Any) -> bool:
    """Return whether a tensor is a view of another one's memory."""
    if x._base is None and all(x is not o for o in others):
        return False
    memory = x.untyped_storage().data_ptr()
    return any(memory == o.untyped_storage().data_ptr() for o in others)


_open: list[_Level] = []


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return len(_open) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Open a level, in which duals are made; `dual_level` closes it by itself.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    RuntimeError
        One is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> forward_ad.enter_dual_level()
    0
    >>> forward_ad.exit_dual_level()
    """
    if _open:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: a dual level is open. "
            "torch.func.jvp nests."
        )
    _open.append(_Level())
    _open[0].__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its duals are no duals any more.

    Parameters
    ----------
    level : int, optional
        Its number; the open one by default.

    Raises
    ------
    RuntimeError
        None is open, or it has another number.

    Examples
    --------
    >>> from pytensorlib.autograd import forward_ad
    >>> number = forward_ad.enter_dual_level()
    >>> forward_ad.exit_dual_level(level=number)
    """
    if not _open and level is None:
        raise RuntimeError("Dual level must be a positive number: no level is open.")
    if not _open or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. "
            "This is not supported."
        )
    _open.pop().__exit__()


class dual_level(contextlib.ContextDecorator):
    """A ``with`` block in which duals are made and unpacked.

    Raises
    ------
    RuntimeError
        A level is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 0.0]))
    ...     y = forward_ad.unpack_dual(x.square())
    >>> y.primal, y.tangent
    (tensor([4., 9.]), tensor([4., 0.]))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a tensor like `tensor` that carries a tangent.

    Parameters
    ----------
    tensor : Tensor
        Of floating point or complex numbers.
    tangent : Tensor
        Of its shape; it is copied where it does not lie in memory as `tensor` does.
    level : int, optional
        The number of the level; there is one at most.

    Returns
    -------
    Tensor
        It shares the memory of `tensor`.

    Raises
    ------
    RuntimeError
        No level is open, `tensor` is a dual, or the shapes differ.
    ValueError
        Its numbers have no derivative.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     print(forward_ad.unpack_dual(x**2).tangent)
    tensor(6.)
    """
    if not _open:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if level not in (None, 0):
        raise RuntimeError(f"Invalid level given to _make_dual: {level}; the open one is 0")
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    _check_shape(tensor, tangent)
    (own,) = _open
    if own.leave(tensor)[1] is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    dual = own.leave(tensor)[0].view_as(tensor)
    if _is_fwd_grad_enabled():
        own.core.give(dual, tangent)
    return dual


def _check_shape(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent of another shape."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent.

    Parameters
    ----------
    tensor : Tensor
        Computed of duals, or not.
    level : int, optional
        The number of the level; there is one at most.

    Returns
    -------
    UnpackedDualTensor
        A pair with names ``primal`` and ``tangent``; the tangent is None where the tensor depends
        on no dual, or no level is open.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(torch.tensor([1.0, 2.0]), torch.ones(2))
    ...     print(forward_ad.unpack_dual(x.prod()).tangent)
    tensor(3.)
    """
    if not _open:
        return UnpackedDualTensor(tensor, None)
    (own,) = _open
    primal, tangent = own.leave(tensor)
    enabled = _is_fwd_grad_enabled()
    return UnpackedDualTensor(primal.view_as(primal), tangent if enabled else None)


class _set_fwd_grad_enabled(contextlib.ContextDecorator):
    """A ``with`` block in which nothing is a dual, or is again."""

    def __init__(self, mode: bool) -> None:
        self.before = _is_fwd_grad_enabled()
        _set(mode)
        self.mode = mode

    def __enter__(self) -> None:
        _set(self.mode)

    def __exit__(self, *error: Any) -> None:
        _set(self.before)


def _set(enabled: bool) -> None:
    """Say whether tangents are computed on this thread."""
    _C._set_forward_enabled(enabled)


def _is_fwd_grad_enabled() -> bool:
    """Return whether tangents are computed."""
    return _C._is_forward_enabled()
