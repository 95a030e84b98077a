"""Differentiation: `grad`, `backward`, custom functions, and checks of derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import _C
from . import _callbacks, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .graph import GradientEdge
from .variable import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "enforce_grad_layout_policy",
    "set_multithreading_enabled",
]

is_grad_enabled = _C.is_grad_enabled


def _calculate_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """Return the shapes of an output and of the gradient that enters there, of one of a batch."""
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _is_checkpoint_valid() -> bool:
    """Return whether parts of a graph may be computed again: in a backward without inputs."""
    return True


def __getattr__(name: str) -> Any:
    from importlib import import_module

    profiles = import_module(f"{_C.__name__}._autograd")
    if name.startswith("__") or not hasattr(profiles, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(profiles, name)


_ONE = (_C.Tensor, GradientEdge)
_UNUSED = (
    "One of the differentiated Tensors appears to not have been used in the graph. "
    "Set allow_unused=True if this is the desired behavior."
)


def _run(*given: Any) -> Any:
    """Run a backward pass, and what was asked for its end."""
    try:
        results = _C._run_backward(*given)
    except BaseException:
        if _callbacks.queued:
            _callbacks.drop()
        raise
    if _callbacks.queued:
        _callbacks.finish()
    return results


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, _ONE) else tuple(value)


def _inputs_tuple(inputs: Any, caller: str) -> tuple[Any, ...]:
    if isinstance(inputs, _ONE):
        return (inputs,)
    if hasattr(inputs, "values") and hasattr(inputs, "keys"):
        if not isinstance(inputs, dict):
            raise TypeError(
                f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. "
                "Other Mapping types are not supported."
            )
        inputs = inputs.values()
    result = tuple(inputs)
    if not result:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    for tensor in result:
        if isinstance(tensor, _C.Tensor) and not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    return result


def _first_grad(out: Any, grad: Any, index: int, batched: bool) -> Any:
    """Return the gradient that enters at `out`: the given one, checked, or a one."""
    if isinstance(out, GradientEdge):
        return grad
    if grad is None:
        if not out.requires_grad:
            return None
        if out.numel() != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs. Reduce it first, as with "
                "sum() or mean(), or say which gradient enters: backward(torch.ones_like(x))."
            )
        if not out.dtype.is_floating_point:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
            )
        return _C.ones_like(out)
    if not isinstance(grad, _C.Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    shape = grad.shape[1:] if batched else grad.shape
    if shape != out.shape:
        if batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, the first dimension of each grad_output is the "
                "batch dimension and the others must match the output, but a mismatch was "
                f"detected: grad_output[{index}] has a shape of {shape} and output[{index}] "
                f"has a shape of {out.shape}."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {shape} and "
            f"output[{index}] has a shape of {out.shape}."
        )
    if grad.dtype.is_complex != out.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same "
            f"dtype. Mismatch in dtype: grad_output[{index}] has a dtype of {grad.dtype} and "
            f"output[{index}] has a dtype of {out.dtype}."
        )
    return grad


def _first_grads(outputs: tuple[Any, ...], grads: Any, batched: bool = False) -> tuple[Any, ...]:
    if grads is None:
        grads = (None,) * len(outputs)
    elif isinstance(grads, _C.Tensor):
        grads = (grads,)
    else:
        grads = tuple(grads)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for index, out in enumerate(outputs):
        if not isinstance(out, _ONE):
            raise AssertionError(
                f"Expected output to be a torch.Tensor, got {type(out).__name__} as element {index}"
            )
    firsts = tuple(
        _first_grad(out, grad, index, batched)
        for index, (out, grad) in enumerate(zip(outputs, grads, strict=True))
    )
    for index, out in enumerate(outputs):
        if isinstance(out, _C.Tensor) and not out.requires_grad:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn. "
                "Nothing it was computed from has requires_grad=True, or recording was off, as "
                "under no_grad()."
            )
    return firsts


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves they came from.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What is differentiated.
    grad_tensors : Tensor or sequence of (Tensor or None), optional
        The gradient that enters at each; None stands for 1 at a tensor of one element.
    retain_graph : bool, optional
        Keep what the graph saved, for another backward. `create_graph` if not given.
    create_graph : bool, default False
        Record the backward itself, for higher derivatives.
    grad_variables : optional
        The old name of `grad_tensors`.
    inputs : Tensor, sequence of Tensor or dict, optional
        The only tensors whose ``.grad`` is to change.

    Raises
    ------
    RuntimeError
        A tensor has more than one element and no gradient, or was not recorded, or the graph
        has been freed by an earlier backward.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    targets = () if inputs is None else _inputs_tuple(inputs, "backward")
    outputs = _as_tuple(tensors)
    firsts = _first_grads(outputs, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    _run(outputs, firsts, keep, create_graph, targets, True, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the sum of the gradients of `outputs` with respect to each of `inputs`.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        What is differentiated.
    inputs : Tensor, sequence of Tensor or dict of Tensor
        What it is differentiated by; ``.grad`` is left alone.
    grad_outputs : Tensor or sequence of (Tensor or None), optional
        The gradient that enters at each output; None stands for 1 at one element.
    retain_graph : bool, optional
        Keep what the graph saved, for another backward. `create_graph` if not given.
    create_graph : bool, default False
        Record the backward itself, for higher derivatives.
    only_inputs : bool, default True
        Accepted for old scripts; False has no effect.
    allow_unused : bool, optional
        Give None for an input that took no part, instead of raising.
    is_grads_batched : bool, default False
        Treat the first dimension of `grad_outputs` as a batch, one backward for each entry.
    materialize_grads : bool, default False
        Give zeros for an input that took no part.

    Returns
    -------
    tuple of Tensor, or dict
        One gradient for each input, in the form of `inputs`.

    Raises
    ------
    RuntimeError
        An input took no part, or a shape does not match, or the graph has been freed.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.grad((x * x).sum(), x)
    (tensor([2., 4.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True).",
            FutureWarning,
            stacklevel=2,
        )
    unused = materialize_grads if allow_unused is None else allow_unused
    targets = _inputs_tuple(inputs, "grad")
    tensors = _as_tuple(outputs)
    firsts = _first_grads(tensors, grad_outputs, is_grads_batched)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        results = _batched(tensors, firsts, keep, create_graph, targets, unused)
    else:
        results = _run(tensors, firsts, keep, create_graph, targets, unused, False)
    if not unused and any(result is None for result in results):
        raise RuntimeError(_UNUSED)
    if materialize_grads:
        if any(
            result is None and isinstance(target, GradientEdge)
            for result, target in zip(results, targets, strict=True)
        ):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        results = tuple(
            _C.zeros_like(target).requires_grad_(create_graph) if result is None else result
            for result, target in zip(results, targets, strict=True)
        )
    if isinstance(inputs, dict):
        return dict(zip(inputs, results, strict=True))
    return results


def _batched(
    tensors: tuple[Any, ...],
    firsts: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    targets: tuple[Any, ...],
    unused: bool,
) -> tuple[Any, ...]:
    """Run one backward for all entries of a batch."""
    sizes = {first.shape[0] for first in firsts if first is not None}
    if len(sizes) != 1:
        raise RuntimeError(
            f"is_grads_batched=True needs grad_outputs with one batch size, got {sorted(sizes)}"
        )
    (count,) = sizes
    if not count:
        return tuple(_C.zeros((0, *t.shape), dtype=t.dtype, device=t.device) for t in targets)
    batch = _C._Batch(count, "error")
    inside = tuple(None if first is None else batch.enter(first, 0) for first in firsts)
    batch.start()
    try:
        found = _run(tensors, inside, keep, create_graph, targets, unused, False)
    finally:
        batch.stop()
    return tuple(None if g is None else batch.leave(g, 0) for g in found)
