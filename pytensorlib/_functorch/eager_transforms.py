"""The transforms of `torch.func` at PyTorch's private path, and private helpers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from .._absent.modules import fill
from .._C import _functorch
from ..autograd import grad as _grad
from ..autograd.grad_mode import inference_mode
from ..func import (
    debug_unwrap,
    functionalize,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from ..func import grad as _grad_transform
from ..func import grad_and_value as _grad_and_value_transform
from ..func._reverse import Argnums, chosen
from ..utils import _pytree as pytree

__all__ = [
    "debug_unwrap",
    "functionalize",
    "grad_and_value_impl",
    "grad_impl",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]

NO_LEVELS = "transforms nest on the one graph here; a tensor has no level that could be entered."
fill(
    globals(),
    NO_LEVELS,
    "grad_increment_nesting jvp_increment_nesting enter_jvp_nesting exit_jvp_nesting "
    "_wrap_tensor_for_grad _wrap_all_tensors _wrap_all_tensors_to_functional "
    "_unwrap_all_tensors_from_functional",
)


def _slice_argnums(args: tuple[Any, ...], argnums: Argnums, as_tuple: bool = True) -> Any:
    """Return the arguments at some positions."""
    places = chosen(argnums, len(args))
    if isinstance(argnums, int) and not as_tuple:
        return args[places[0]]
    return tuple(args[place] for place in places)


def _replace_args(
    old_args: tuple[Any, ...], new_args: tuple[Any, ...], argnums: Argnums
) -> tuple[Any, ...]:
    """Return the arguments with others at some positions."""
    places = chosen(argnums, len(old_args))
    if len(new_args) != len(places):
        raise RuntimeError(
            "new_args should be of the same size as argnums. "
            f"Argnums size {len(places)}, new_args size {len(new_args)}"
        )
    new = dict(zip(places, new_args, strict=True))
    return tuple(new.get(place, arg) for place, arg in enumerate(old_args))


def _validate_and_wrap_argnums(argnums: Argnums, num_args: int) -> Argnums:
    """Return positions counted from the front."""
    places = chosen(argnums, num_args)
    return places[0] if isinstance(argnums, int) else tuple(places)


_validate_and_wrap_argnum = _validate_and_wrap_argnums


def _as_tuple(val: Any) -> tuple[Any, ...]:
    """Return a tuple, of one value where it is no tuple."""
    return val if isinstance(val, tuple) else (val,)


def _set_tensor_requires_grad(x: Any) -> Any:
    """Let a tensor need gradients."""
    return x.requires_grad_()


def _create_differentiable(inps: Any, level: int | None = None) -> Any:
    """Let all tensors need gradients; refuse what is no tensor."""

    def differentiable(x: Any) -> Any:
        if not isinstance(x, _C.Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        return x.requires_grad_()

    return pytree.tree_map(differentiable, inps)


def _is_differentiable(maybe_tensor: Any) -> bool:
    """Return whether this is a tensor that needs gradients."""
    return isinstance(maybe_tensor, _C.Tensor) and maybe_tensor.requires_grad


def _any_differentiable(tensor_or_tuple_of_tensors: Any) -> bool:
    """Return whether any of some tensors needs gradients."""
    return any(map(_is_differentiable, _as_tuple(tensor_or_tuple_of_tensors)))


def _autograd_grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool = False,
    create_graph: bool = True,
) -> tuple[Any, ...]:
    """Return gradients by inputs, zeros by those that nothing depends on."""
    given = [None] * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    if not pairs:
        return tuple(map(_C.zeros_like, inputs))
    found = _grad(
        [o for o, _ in pairs],
        inputs,
        None if grad_outputs is None else [g for _, g in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


@contextlib.contextmanager
def enable_inplace_requires_grad(enabled: bool) -> Iterator[None]:
    """Set, for a block, what `requires_grad_` may do inside PyTorch's transforms.

    It may always do so here.
    """
    before = _functorch.get_inplace_requires_grad_allowed()
    _functorch.set_inplace_requires_grad_allowed(enabled)
    try:
        yield
    finally:
        _functorch.set_inplace_requires_grad_allowed(before)


def _disable_inference_mode() -> Any:
    """Leave inference mode for a block."""
    return inference_mode(False)


def grad_impl(
    func: Any, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the gradient of `func` at some arguments, as `torch.func.grad` does.

    Parameters
    ----------
    func : callable
        Returns a tensor of one element.
    argnums, has_aux
        As in `torch.func.grad`.
    args : tuple
        Arguments by position.
    kwargs : dict
        Arguments by name.

    Returns
    -------
    object
        What the transformed function returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.eager_transforms import grad_impl
    >>> grad_impl(torch.sin, 0, False, (torch.tensor(0.0),), {})
    tensor(1.)
    """
    return _grad_transform(func, argnums, has_aux)(*args, **kwargs)


def grad_and_value_impl(
    func: Any, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the gradient and the value of `func`, as `torch.func.grad_and_value` does.

    Parameters
    ----------
    func : callable
        Returns a tensor of one element.
    argnums, has_aux
        As in `torch.func.grad_and_value`.
    args : tuple
        Arguments by position.
    kwargs : dict
        Arguments by name.

    Returns
    -------
    object
        What the transformed function returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.eager_transforms import grad_and_value_impl
    >>> grad_and_value_impl(torch.sin, 0, False, (torch.tensor(0.0),), {})
    (tensor(1.), tensor(0.))
    """
    return _grad_and_value_transform(func, argnums, has_aux)(*args, **kwargs)
