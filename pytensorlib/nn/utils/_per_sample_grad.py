"""Gradients of parameters for each sample of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ... import Tensor
from ..module import Module
from ..modules.batchnorm import _BatchNorm
from .stateless import _reparametrize_module

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Any,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """Return `module` as a function whose backward gives each sample's gradients.

    They come in the attribute `grad_sample` of the parameters, which then get no `grad`. The
    module runs once for each sample.

    Parameters
    ----------
    module : Module
        Treats each sample by itself.
    batch_size : int, optional
        How many samples there are; what the tensors among the arguments have, where not given.
    loss_reduction : {"sum", "mean"}, default "sum"
        How the losses of samples become one.
    batch_first : bool, default True
        Whether samples lie along dimension 0, and not 1.

    Returns
    -------
    callable
        Takes and gives what the module takes and gives.

    Raises
    ------
    RuntimeError
        An argument is none of these; and where it is called, the size is not found, statistics of
        a batch are needed, or gradients of an earlier call are still there.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> net = torch.nn.Linear(3, 2)
    >>> call_for_per_sample_grads(net)(torch.ones(4, 3)).sum().backward()
    >>> net.weight.grad_sample.shape
    torch.Size([4, 2, 3])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for part in module.modules():
            if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None):
                raise RuntimeError(
                    "Expanded Weights encountered but cannot handle function batch_norm: its "
                    "samples depend on each other"
                )
        pytree = pt.utils._pytree
        flat, spec = pytree.tree_flatten((args, kwargs))
        size = batch_size or found_size(flat, dim)
        weights = {
            name: expanded(p, size, size if loss_reduction == "mean" else 1).unbind(0)
            for name, p in module.named_parameters()
            if p.requires_grad
        }
        outputs = []
        for index in range(size):
            one = [
                x.narrow(dim, index, 1)
                if isinstance(x, Tensor) and x.dim() > dim and x.shape[dim] == size
                else x
                for x in flat
            ]
            own_args, own_kwargs = spec.unflatten(one)
            given = {name: parts[index] for name, parts in weights.items()}
            with _reparametrize_module(module, given, tie_weights=True):
                outputs.append(pytree.tree_flatten(module(*own_args, **own_kwargs)))
        columns = zip(*(leaves for leaves, _ in outputs), strict=True)
        return outputs[0][1].unflatten(
            [pt.cat(c, dim) if isinstance(c[0], Tensor) else c[0] for c in columns]
        )

    return wrapper


def found_size(values: list[Any], dim: int) -> int:
    """Return how many samples the tensors among some values have."""
    sizes = [x.shape[dim] for x in values if isinstance(x, Tensor)]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    for size in sizes[1:]:
        if size != sizes[0]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {sizes[0]} "
                f"and one with batch size {size}. Please specify it explicitly using the batch "
                "size kwarg in call_for_per_sample_grads"
            )
    return sizes[0]


def expanded(p: Any, size: int, scale: int) -> Tensor:
    """Return a leaf with a parameter for each sample, whose gradient becomes `grad_sample`."""
    if getattr(p, "grad_sample", None) is not None:
        raise RuntimeError(
            "Current Expanded Weights accumulates the gradients, which will be incorrect for "
            f"multiple calls without clearing gradients. Please clear out the grad_sample "
            f"parameter of {p}"
        )
    each = p.detach().expand(size, *p.shape).requires_grad_()

    def keep(g: Tensor) -> None:
        p.grad_sample = g * scale

    each.register_hook(keep)
    return each
