"""Dual numbers: tensors that carry a tangent through what is computed of them.

While a level is open every function of a dual is followed by its derivative. There is no formula of
its own for that: a product with the transposed Jacobian is linear in its vector, so two backwards
through the one function give the product with the Jacobian. Views of tangents go with views.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from .. import _C, random
from ..utils import _pytree as pytree
from ..utils.weak import WeakTensorKeyDictionary
from ._levels import Level, Linear, _switch, _writes
from .function import _apply_below, _watching

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


# Functions whose results are floats that do not depend on their argument's tangent, but have one.
_SAMPLERS = {"bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_"}
_SAMPLERS |= {"normal_", "random_", "uniform_"}


class _Duals:
    """The level that is open: it sees all functions, and keeps the tangents of tensors."""

    def __init__(self) -> None:
        # None stands for a tensor that shares its memory with a dual and is none.
        self.tangents: Any = WeakTensorKeyDictionary()
        self.enabled = _switch.enabled
        _C._push_torch_function_mode(self, True)
        _watching.stack.append(self)

    def close(self) -> None:
        """Take the tangents from all duals."""
        _watching.stack.remove(self)
        _C._pop_torch_function_mode()
        self.tangents.clear()

    def tangent(self, x: Any) -> Any:
        """Return the tangent of a tensor, and None of one that is no dual."""
        if x in self.tangents:
            return self.tangents[x]
        base = x._base
        whole = None if base is None else self.tangents.get(base)
        if whole is None:
            return None
        at = x.storage_offset() - base.storage_offset() + whole.storage_offset()
        found = self.tangents[x] = whole.as_strided(x.shape, x.stride(), at)
        return found

    def put(self, x: Any, tangent: Any) -> None:
        """Give a tensor a tangent that lies in memory as the tensor does."""
        if any(_C._slices_of(t) is not None for t in (x, tangent)):
            # Slices have no memory of their own to compare.
            if x.stride() != tangent.stride():
                pairs = zip(x.shape, x.stride(), strict=True)
                room = tangent.new_zeros(1 + sum((n - 1) * step for n, step in pairs if n))
                tangent = room.as_strided(x.shape, x.stride(), 0).copy_(tangent)
            self.tangents[x] = tangent
            return
        at = (x.storage_offset(), x.untyped_storage().nbytes())
        lies = (tangent.storage_offset(), tangent.untyped_storage().nbytes())
        if at != lies or x.stride() != tangent.stride() or tangent._base is not None:
            same = lies == at and x.stride() == tangent.stride()
            tangent = tangent if same else _alike(x).copy_(tangent)
        self.tangents[x] = tangent

    def written(self, x: Any) -> Any:
        """Return the tangent of a tensor that is written to: zeros at first, in its base too."""
        found = self.tangent(x)
        if found is None and x not in self.tangents and x._base is not None:
            base = x._base
            if self.tangents.get(base) is None:
                self.tangents[base] = _alike(base)
            found = self.tangent(x)
        if found is None:
            found = self.tangents[x] = _alike(x)
        return found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function, and put the tangents of its results beside them."""
        kwargs = kwargs or {}
        flat, spec = pytree.tree_flatten((args, kwargs))
        tensors = {id(t): t for t in flat if isinstance(t, _C.Tensor)}
        duals = {i: t for i, t in tensors.items() if self.enabled and self.tangent(t) is not None}
        if not duals:
            return func(*args, **kwargs)
        name = _name(func)
        if kwargs.get("out") is not None:
            raise NotImplementedError(
                f"Trying to use forward AD with {name}_out that does not support it because it is "
                "an out= function"
            )
        if _writes(name) or name == "__setitem__":
            return self.write(func, name, args, kwargs, duals)
        return self.follow(func, name, flat, spec, duals)

    def follow(self, func: Any, name: str, flat: Any, spec: Any, duals: dict[int, Any]) -> Any:
        """Call a function that writes to none of its arguments."""
        level = Level()
        args, kwargs = spec.unflatten(self.entered(level, flat, duals))
        with _C._Mode(True):
            y = func(*args, **kwargs)
        outputs, form = pytree.tree_flatten(y)
        inside = [*duals.values(), *level.like]
        if any(isinstance(o, _C.Tensor) and _shares(o, inside) for o in outputs):
            return self.view(func, flat, spec, duals)
        products = self.products(level, outputs, duals, name)
        left = [level.leave([o])[0] if isinstance(o, _C.Tensor) else o for o in outputs]
        for o, product in zip(left, products, strict=True):
            if product is not None:
                self.put(o, product)
        return form.unflatten(left)

    def view(self, func: Any, flat: Any, spec: Any, duals: dict[int, Any]) -> Any:
        """Call a function that gives views: their tangents are views of tangents."""
        args, kwargs = spec.unflatten(flat)
        y = func(*args, **kwargs)
        args, kwargs = spec.unflatten([self.tangent(t) if id(t) in duals else t for t in flat])
        pairs = zip(pytree.tree_leaves(y), pytree.tree_leaves(func(*args, **kwargs)), strict=True)
        for o, tangent in pairs:
            if isinstance(o, _C.Tensor) and not any(o is t for t in flat):
                self.tangents[o] = tangent
        return y

    def entered(self, level: Level, flat: Any, duals: dict[int, Any]) -> list[Any]:
        """Return arguments with what stands for duals in their places."""
        inside = {i: level.enter(t) for i, t in duals.items()}
        return [inside.get(id(t), t) for t in flat]

    def products(self, level: Level, outputs: Any, duals: dict[int, Any], name: str) -> list[Any]:
        """Return the tangent of each output; None for what has none."""
        tangents = [self.tangent(t) for t in duals.values()]
        live = [o for o in outputs if isinstance(o, _C.Tensor) and o.requires_grad]
        create = level.recording and (
            level.reaches_out(live) or any(t.requires_grad for t in tangents)
        )
        try:
            found = iter(Linear(level, live)(tangents, create) if live else ())
        except (NotImplementedError, RuntimeError) as error:
            if "derivative" not in str(error):
                raise
            raise NotImplementedError(
                f"Trying to use forward AD with {name} that does not support it because it has "
                f"not been implemented yet: {error}"
            ) from error
        products = []
        for o in outputs:
            product = None
            if isinstance(o, _C.Tensor) and o.requires_grad:
                product = next(found)
                product = _C.zeros_like(o.detach()) if product is None else product
                product = product if create else product.detach()
            elif isinstance(o, _C.Tensor) and name in _SAMPLERS:
                product = _C.zeros_like(o)
            products.append(product)
        return products

    def write(self, func: Any, name: str, args: Any, kwargs: Any, duals: dict[int, Any]) -> Any:
        """Call a function that writes to its first argument."""
        target = args[0]
        if name in _SAMPLERS:
            self.written(target).zero_()
            return func(*args, **kwargs)
        states = random._states()
        level = Level()
        level.recording = level.recording and any(
            t.requires_grad for t in (*duals.values(), *map(self.tangent, duals.values()))
        )
        with _C._Mode(True):
            inside = {i: level.enter(t) for i, t in duals.items()}
            changed = inside.get(id(target), target.detach()).clone()
            inside[id(target)] = changed
            flat, spec = pytree.tree_flatten((args, kwargs))
            places, named = spec.unflatten([inside.get(id(t), t) for t in flat])
            func(*places, **named)
            (product,) = self.products(level, [changed], duals, name)
        random._restore(states)
        y = func(*args, **kwargs)
        tangent = self.written(target)
        if tangent.shape != target.shape or tangent.stride() != target.stride():
            self.put(target, product if product is not None else _alike(target))
        elif product is None:
            tangent.zero_()
        else:
            tangent.copy_(product)
        return y

    def apply(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function with a derivative of its own, and its `jvp` where an argument is dual."""
        tensors = [isinstance(a, _C.Tensor) for a in args]
        found = [self.tangent(a) if self.enabled and t else None for a, t in zip(args, tensors)]
        if all(t is None for t in found):
            return _apply_below(self, cls, args, kwargs)
        seen: list[Any] = []

        def remember(ctx: Any) -> None:
            seen.append(ctx)

        context = type(
            cls._backward_cls.__name__,
            (cls._backward_cls,),
            {"__init__": remember, "_forward_cls": cls},
        )
        with _without():
            y = _C._function_apply(
                _with_context(cls, context),
                *args,
                **kwargs,
            )
        (ctx,) = seen
        outputs = y if isinstance(y, tuple) else (y,)
        given = [
            _C.zeros_like(a) if t is None and is_tensor and ctx.materialize_grads else t
            for a, t, is_tensor in zip(args, found, tensors, strict=True)
        ]
        ctx._for_forward = getattr(ctx, "saved_for_forward", None)
        try:
            with _without():
                products = cls.jvp(ctx, *given)
        finally:
            ctx._for_forward = None
        products = products if isinstance(products, (tuple, list)) else (products,)
        if len(products) != len(outputs):
            raise RuntimeError(
                f"{cls.__name__}.jvp returned an incorrect number of gradients (expected "
                f"{len(outputs)}, got {len(products)})"
            )
        for i, (o, product) in enumerate(zip(outputs, products, strict=True)):
            if product is None or not isinstance(o, _C.Tensor):
                continue
            if not isinstance(product, _C.Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(product).__name__}) for grad output {i}."
                )
            _check_shape(o, product)
            self.keep(o, product, args, given)
        return y

    def keep(self, o: Any, product: Any, args: Any, given: Any) -> None:
        """Put the tangent that a `jvp` gave beside an output, as the output lies in memory."""
        for a, tangent in zip(args, given, strict=True):
            if o is a:
                if tangent is None or product.data_ptr() != tangent.data_ptr():
                    raise RuntimeError(
                        "An inplace custom Function is not modifying the forward mode gradients "
                        "inplace. If the forward is modifying an input inplace, then the jvp "
                        "function must modify the corresponding gradient inplace."
                    )
                self.tangents[o] = product
                return
        if _shares(o, [a for a in args if isinstance(a, _C.Tensor)]):
            if not product._is_view():
                raise RuntimeError(
                    "A custom Function's forward is returning a view (or an input as-is) but the "
                    "jvp is not returning a view."
                )
            self.tangents[o] = product
            return
        self.put(o, product)


def _alike(x: Any) -> Any:
    """Return zeros that lie in memory as a tensor does."""
    count = x.untyped_storage().nbytes() // x.element_size()
    whole = _C.zeros(count, dtype=x.dtype, device=x.device)
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def _with_context(cls: Any, context: type) -> Any:
    """Return a Function whose `ctx` is of another class."""
    found = type(cls)(cls.__name__, (cls,), {})
    found._backward_cls = context
    return found


def _shares(x: Any, others: Any) -> bool:
    """Return whether a tensor is a view of another one's memory."""
    if x._base is None and all(x is not o for o in others):
        return False
    memory = x.untyped_storage().data_ptr()
    return any(memory == o.untyped_storage().data_ptr() for o in others)


def _name(func: Any) -> str:
    """Return the name by which errors know a function."""
    name = getattr(func, "__name__", "")
    return getattr(func.__self__, "__name__", name) if name == "__get__" else name


_open: list[_Duals] = []


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
    _open.append(_Duals())
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
    _open.pop().close()


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
    (duals,) = _open
    if duals.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    enabled = duals.enabled
    with _without():
        dual = tensor.view_as(tensor)
        if enabled:
            duals.put(dual, tangent)
    return dual


def _check_shape(tensor: Any, tangent: Any) -> None:
    """Refuse a tangent of another shape."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )


@contextlib.contextmanager
def _without() -> Any:
    """Compute on tensors alone meanwhile."""
    before = [duals.enabled for duals in _open]
    for duals in _open:
        duals.enabled = False
    try:
        yield
    finally:
        for duals, enabled in zip(_open, before, strict=True):
            duals.enabled = enabled


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
    (duals,) = _open
    tangent = duals.tangent(tensor) if duals.enabled else None
    with _without():
        primal = tensor.view_as(tensor)
    duals.tangents[primal] = None
    return UnpackedDualTensor(primal, tangent)


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
    _switch.enabled = enabled
    for duals in _open:
        duals.enabled = enabled


def _is_fwd_grad_enabled() -> bool:
    """Return whether tangents are computed."""
    return _switch.enabled
