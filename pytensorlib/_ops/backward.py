"""Operators of PyTorch's that give the gradients of one function, as programs call them by name:
``torch.ops.aten.convolution_backward``.

Nothing here is called by `backward`, whose own functions do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensorlib as pt

__all__ = ["BACKWARD"]


def _recorded(*tensors: Any) -> bool:
    return pt.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _gradients(
    function: Callable[..., Any], inputs: Sequence[Any], grad_output: Any
) -> tuple[Any, ...]:
    """Return the gradients of a function by its inputs, recorded where those are."""
    record = _recorded(grad_output, *inputs)
    with pt.enable_grad():
        # What has a history keeps it, for the derivative of these gradients.
        leaves = [x if record and x.requires_grad else x.detach().requires_grad_() for x in inputs]
        found: tuple[Any, ...] = pt.autograd.grad(
            function(*leaves), leaves, grad_output, create_graph=record
        )
    return found


def _convolution_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of `convolution` by its input, weight and bias, None for others."""
    options = (stride, padding, dilation, transposed, output_padding, groups)

    def convolve(x: Any, w: Any) -> Any:
        return pt.convolution(x, w, None, *options)

    grads: list[Any] = [None, None]
    if output_mask[0] and output_mask[1]:
        grads[:] = _gradients(convolve, (input, weight), grad_output)
    elif output_mask[0]:
        grads[:1] = _gradients(lambda x: convolve(x, weight), (input,), grad_output)
    elif output_mask[1]:
        grads[1:] = _gradients(lambda w: convolve(input, w), (weight,), grad_output)
    bias = None
    if output_mask[2]:
        bias = grad_output.sum([d for d in range(grad_output.dim()) if d != 1])
    return grads[0], grads[1], bias


def _convolution_double_backward(
    ggI: Any,
    ggW: Any,
    ggb: Any,
    gO: Any,
    weight: Any,
    self: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of what `_convolution_backward` gives by its first three arguments."""
    options = (stride, padding, dilation, transposed, output_padding, groups)
    by_output: Any = None
    if output_mask[0]:
        parts = [
            pt.convolution(x, w, None, *options)
            for x, w in ((ggI, weight), (self, ggW))
            if x is not None and w is not None
        ]
        if ggb is not None:
            shape = parts[0].shape if parts else gO.shape
            parts.append(ggb.view(1, -1, *[1] * (len(shape) - 2)).expand(shape))
        by_output = sum(parts[1:], parts[0]) if parts else None
    by_input = by_weight = None
    if output_mask[1] and ggW is not None:
        mask = (True, False, False)
        by_input, _, _ = _convolution_backward(gO, self, ggW, None, *options, mask)
    if output_mask[2] and ggI is not None:
        mask = (False, True, False)
        _, by_weight, _ = _convolution_backward(gO, ggI, weight, None, *options, mask)
    return by_output, by_input, by_weight


def _gelu_backward(grad_output: Any, self: Any, *, approximate: str = "none") -> Any:
    """Return the gradient of `gelu`."""
    gelu = pt.nn.functional.gelu
    return _gradients(lambda x: gelu(x, approximate=approximate), (self,), grad_output)[0]


def _silu_backward(grad_output: Any, self: Any) -> Any:
    """Return the gradient of `silu`."""
    return _gradients(pt.nn.functional.silu, (self,), grad_output)[0]


def _sigmoid_backward(grad_output: Any, output: Any) -> Any:
    """Return the gradient of `sigmoid`, by its result."""
    return grad_output * (output * (1 - output)).conj()


def _tanh_backward(grad_output: Any, output: Any) -> Any:
    """Return the gradient of `tanh`, by its result."""
    return grad_output * (1 - output * output).conj()


def _threshold_backward(grad_output: Any, self: Any, threshold: float) -> Any:
    """Return the gradient of `threshold`, which is that of `relu` for 0."""
    return pt.where(self <= threshold, pt.zeros_like(grad_output), grad_output)


def _embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """Return the gradient of `embedding` by its weight."""
    shape = (num_weights, grad_output.shape[-1])
    weight = pt.zeros(shape, dtype=grad_output.dtype, device=grad_output.device)
    padding = padding_idx if padding_idx >= 0 else None

    def embed(w: Any) -> Any:
        embedding = pt.nn.functional.embedding
        return embedding(indices, w, padding, scale_grad_by_freq=scale_grad_by_freq)

    return _gradients(embed, (weight,), grad_output)[0]


def _native_layer_norm_backward(
    grad_out: Any,
    input: Any,
    normalized_shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of `native_layer_norm` by its input, weight and bias."""
    rows = list(range(input.dim() - len(normalized_shape)))
    inner = list(range(len(rows), input.dim()))
    normal = (input - mean) * rstd
    grads: list[Any] = [None, None, None]
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * weight
        fitted = g.mean(inner, True) + normal * (g * normal).mean(inner, True)
        grads[0] = (rstd * (g - fitted)).to(input.dtype)
    if output_mask[1] and weight is not None:
        product = grad_out * normal
        grads[1] = (product.sum(rows) if rows else product).to(weight.dtype)
    if output_mask[2] and bias is not None:
        grads[2] = (grad_out.sum(rows) if rows else grad_out).to(bias.dtype)
    return grads[0], grads[1], grads[2]


# By the names of operators.
BACKWARD: dict[str, Callable[..., Any]] = {
    "_convolution_double_backward": _convolution_double_backward,
    "convolution_backward": _convolution_backward,
    "embedding_dense_backward": _embedding_dense_backward,
    "gelu_backward": _gelu_backward,
    "native_layer_norm_backward": _native_layer_norm_backward,
    "sigmoid_backward": _sigmoid_backward,
    "silu_backward": _silu_backward,
    "tanh_backward": _tanh_backward,
    "threshold_backward": _threshold_backward,
}
for _function in BACKWARD.values():
    # A mode is given what computes it within `backward`.
    vars(_function)["_is_part"] = True
