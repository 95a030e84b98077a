"""Private helpers of custom Functions under transforms."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytensorlib as pt

from .._absent.modules import fill
from ..autograd import Function
from ..utils import _pytree as pytree

__all__ = ["CtxWithSavedTensors", "VmapInfo", "WrappedCtx", "reductify", "reductify_leaf"]

fill(
    globals(),
    "vmap makes what it needs of a Function by itself, and transforms nest on the one graph: a "
    "Function needs no other made of it.",
    "vmapify_autograd_function generate_single_level_function custom_function_call_vmap "
    "custom_function_call_grad custom_function_call_functionalize CtxCustomSave "
    "CustomFunctionHigherOrderOperator AutogradFunctionApply",
)


def custom_function_call(autograd_function: type[Function], *args: Any, **kwargs: Any) -> Any:
    """Call a Function.

    Parameters
    ----------
    autograd_function : type
        A subclass of `torch.autograd.Function`.
    *args, **kwargs
        What it takes.

    Returns
    -------
    object
        What it returns.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.autograd_function import custom_function_call
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    >>> custom_function_call(Double, torch.ones(1))
    tensor([2.])
    """
    return autograd_function.apply(*args, **kwargs)


class VmapInfo(NamedTuple):
    """What a Function's own rule for `vmap` is told: the slices, and what is random in them.

    Examples
    --------
    >>> from pytensorlib._functorch.autograd_function import VmapInfo
    >>> VmapInfo(batch_size=3, randomness="error").batch_size
    3
    """

    batch_size: int
    randomness: str


def has_overridden_vmap_rule(autograd_function: type[Function]) -> bool:
    """Return whether a Function has a rule for `vmap` of its own."""
    return hasattr(autograd_function, "vmap")


def validate_vmap_returns_tuple_of_two_elements(result: Any) -> None:
    """Refuse what a rule for `vmap` must not return."""
    if not isinstance(result, tuple):
        got = f"a {type(result)} instead"
    elif len(result) != 2:
        got = f"{len(result)} returns instead"
    else:
        return
    raise RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree "
        f"structure compatible with the output. Got {got}"
    )


class WrappedCtx:
    """A context in front of another: what it has not itself is the other's.

    Parameters
    ----------
    ctx : object
        The other.

    Raises
    ------
    RuntimeError
        The other has fields of the names that are used here.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from pytensorlib._functorch.autograd_function import WrappedCtx
    >>> WrappedCtx(SimpleNamespace(x=1)).x
    1
    """

    _pt_reserved_attrs: tuple[str, ...] = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx: Any) -> None:
        reserved = type(self)._pt_reserved_attrs
        if not isinstance(ctx, WrappedCtx) and any(hasattr(ctx, name) for name in reserved):
            raise RuntimeError(
                f"PyTorch reserves the {reserved} field on ctx. Please name your fields on ctx "
                "something else to avoid name collision."
            )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self)._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """A context in front of another, with saved tensors of its own.

    Parameters
    ----------
    ctx : object
        The other.
    new_saved_tensors : tuple of Tensor
        What it says that it saved.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from pytensorlib._functorch.autograd_function import CtxWithSavedTensors
    >>> CtxWithSavedTensors(SimpleNamespace(x=1), (2,)).saved_tensors
    (2,)
    """

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self) -> Any:
        """Return the saved tensors."""
        return self._pt_new_saved_tensors


def reductify(
    grad_input: Any,
    grad_input_bdim: Any,
    input_bdim: Any,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Any:
    """Return gradients with the slices where the inputs have them.

    Parameters
    ----------
    grad_input : Tensor, None or tuple of them
        Gradients.
    grad_input_bdim : int, None or tuple of them
        The dimension of the slices in each gradient.
    input_bdim : int, None or tuple of them
        The dimension of the slices in each input.
    batch_size : int
        The number of slices.
    target_shape_without_bdim_to_reduce_to : tuple of shapes, optional
        The shapes of one slice of the inputs, to which gradients are summed.

    Returns
    -------
    tuple
        One gradient for each.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.autograd_function import reductify
    >>> reductify(torch.ones(3, 2), 0, None, 3)
    (tensor([3., 3.]),)
    """
    as_tuple = [
        x if isinstance(x, tuple) else (x,) for x in (grad_input, grad_input_bdim, input_bdim)
    ]
    shapes = target_shape_without_bdim_to_reduce_to or (None,) * len(as_tuple[0])
    return tuple(
        reductify_leaf(g, g_dim, dim, batch_size, shape)
        for g, g_dim, dim, shape in zip(*as_tuple, shapes, strict=True)
    )


def reductify_leaf(
    grad_input: Any,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Any:
    """Return one gradient with the slices where its input has them.

    Parameters
    ----------
    grad_input : Tensor or None
        The gradient.
    grad_input_bdim, input_bdim : int or None
        The dimension of the slices in the gradient and in the input.
    batch_size : int
        The number of slices.
    target_shape_without_bdim_to_reduce_to : sequence of int, optional
        The shape of one slice of the input.

    Returns
    -------
    Tensor or None
        Summed over the slices where the input has none, repeated where the gradient has none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._functorch.autograd_function import reductify_leaf
    >>> reductify_leaf(torch.ones(2), None, 0, 3).shape
    torch.Size([3, 2])
    """
    if grad_input is None or (grad_input_bdim is None and input_bdim is None):
        return grad_input
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        shape = list(grad_input.shape)
        shape.insert(input_bdim, batch_size)
        grad_input = grad_input.unsqueeze(input_bdim).expand(shape)
    else:
        grad_input = grad_input.movedim(grad_input_bdim, input_bdim)
    if target_shape_without_bdim_to_reduce_to is not None:
        target = tuple(target_shape_without_bdim_to_reduce_to)
        summed = [x.sum_to_size(target) for x in grad_input.unbind(input_bdim)]
        grad_input = pt.stack(summed, input_bdim)
    return grad_input


def unpack_outputs(outputs: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the outputs of a call, and the dimensions of slices that come last among them."""
    dims = outputs[-1]
    return (outputs[0] if isinstance(dims, int) or dims is None else outputs[:-1]), dims


def get_tangents_in_dims(input_dims: Any, tangents: Any) -> Any:
    """Return the dimension of the slices in each tangent: None where there is no tangent."""
    flat_dims, spec = pytree.tree_flatten(input_dims)
    flat = pytree.tree_leaves(tangents)
    pairs = zip(flat_dims, flat, strict=True)
    return spec.unflatten([None if t is None else dim for dim, t in pairs])
