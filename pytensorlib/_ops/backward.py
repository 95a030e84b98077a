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
    grads = grad_output if isinstance(grad_output, (list, tuple)) else [grad_output]
    record = _recorded(*grads, *inputs)
    with pt.enable_grad():
        # What has a history keeps it, for the derivative of these gradients; an alias is apart
        # from other inputs that were computed with the same tensor.
        leaves = [
            x.view_as(x) if record and x.requires_grad else x.detach().requires_grad_()
            for x in inputs
        ]
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


# Pools and sizes of pictures.


def _max_pool_with_indices_backward(
    grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: Any,
) -> Any:  # fmt: skip
    """Return the gradient of a maximum in windows, by the places that the maxima have."""
    n = len(kernel_size)
    flat = grad_output.new_zeros(*self.shape[:-n], self.shape[-n:].numel())
    places, values = indices.flatten(-n), grad_output.flatten(-n)
    return flat.scatter_add(-1, places, values).view(self.shape)


def _avg_pool_backward(n: int) -> Callable[..., Any]:
    def backward(
        grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any,
        ceil_mode: bool, count_include_pad: bool, divisor_override: Any,
    ) -> Any:  # fmt: skip
        """Return the gradient of a mean in windows."""
        pool: Any = getattr(pt.nn.functional, f"avg_pool{n}d")
        rest = padding, ceil_mode, count_include_pad, divisor_override

        def pooled(x: Any) -> Any:
            return pool(x, kernel_size, list(stride) or kernel_size, *rest)

        return _gradients(pooled, (self,), grad_output)[0]

    return backward


def _adaptive_avg_pool_backward(n: int) -> Callable[..., Any]:
    def backward(grad_output: Any, self: Any) -> Any:
        """Return the gradient of a mean in windows that fit the result."""
        pool: Any = getattr(pt.nn.functional, f"adaptive_avg_pool{n}d")
        sizes = list(grad_output.shape[-n:])
        return _gradients(lambda x: pool(x, sizes), (self,), grad_output)[0]

    return backward


def _upsample_backward(name: str, corners: bool) -> Callable[..., Any]:
    def backward(grad_output: Any, output_size: Any, input_size: Any, *rest: Any) -> Any:
        """Return the gradient of a picture of another size."""
        aligned = rest[:1] if corners else ()
        scales = [s for s in rest[len(aligned) :] if s is not None]
        resize: Any = getattr(pt._C._nn, name)
        x = grad_output.new_zeros(list(input_size))

        def resized(t: Any) -> Any:
            return resize(t, list(output_size), *aligned, *scales)

        return _gradients(resized, (x,), grad_output)[0]

    return backward


def _pad_backward(mode: str) -> Callable[..., Any]:
    def backward(grad_output: Any, self: Any, padding: Any) -> Any:
        """Return the gradient of a tensor with a border."""
        pad = pt.nn.functional.pad
        return _gradients(lambda x: pad(x, list(padding), mode=mode), (self,), grad_output)[0]

    return backward


# Norms.


def _native_group_norm_backward(
    grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
    group: int, output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the gradients of `native_group_norm` by its input, weight and bias."""
    shape = (N, group, C // max(group, 1), HxW)
    g = grad_out.reshape(shape)
    normal = (input.reshape(shape) - mean.reshape(N, group, 1, 1)) * rstd.reshape(N, group, 1, 1)
    grads: list[Any] = [None, None, None]
    if output_mask[0]:
        scaled = g if weight is None else g * weight.view(1, *shape[1:3], 1)
        fitted = scaled.mean([2, 3], True) + normal * (scaled * normal).mean([2, 3], True)
        made = rstd.reshape(N, group, 1, 1) * (scaled - fitted)
        grads[0] = made.to(input.dtype).reshape(input.shape)
    if output_mask[1]:
        grads[1] = (g * normal).sum([0, 3]).reshape(C)
    if output_mask[2]:
        grads[2] = g.sum([0, 3]).reshape(C)
    return grads[0], grads[1], grads[2]


def _native_batch_norm_backward(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any,
    save_invstd: Any, train: bool, eps: float, output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the gradients of `native_batch_norm` by its input, weight and bias."""
    over = [d for d in range(input.dim()) if d != 1]
    shape = [1, -1, *[1] * (input.dim() - 2)]
    mean, scale = save_mean, save_invstd
    if not train:
        mean, scale = running_mean, (running_var + eps).rsqrt()
    mean, scale = mean.view(shape), scale.view(shape)
    normal = (input - mean) * scale
    grads: list[Any] = [None, None, None]
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * weight.view(shape)
        if train:
            g = g - (g.mean(over, True) + normal * (g * normal).mean(over, True))
        grads[0] = (g * scale).to(input.dtype)
    if output_mask[1]:
        grads[1] = (grad_out * normal).sum(over)
    if output_mask[2]:
        grads[2] = grad_out.sum(over)
    return grads[0], grads[1], grads[2]


# Losses.

_WORDS = ("none", "mean", "sum")


def _loss_backward(name: str) -> Callable[..., Any]:
    def backward(grad_output: Any, self: Any, target: Any, reduction: int, *rest: Any) -> Any:
        """Return the gradient of a loss by its input."""
        loss: Any = getattr(pt.nn.functional, name)
        more = {"beta": rest[0]} if name == "smooth_l1_loss" and rest else {}
        more = {"delta": rest[0]} if name == "huber_loss" and rest else more

        def computed(x: Any) -> Any:
            return loss(x, target, reduction=_WORDS[reduction], **more)

        return _gradients(computed, (self,), grad_output)[0]

    return backward


def _binary_cross_entropy_backward(
    grad_output: Any, self: Any, target: Any, weight: Any = None, reduction: int = 1
) -> Any:
    """Return the gradient of `binary_cross_entropy` by its input."""

    def computed(x: Any) -> Any:
        loss = pt.nn.functional.binary_cross_entropy
        return loss(x, target, weight, reduction=_WORDS[reduction])

    return _gradients(computed, (self,), grad_output)[0]


def _nll_loss_backward(
    grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
    total_weight: Any,
) -> Any:  # fmt: skip
    """Return the gradient of `nll_loss` by its input."""
    dim = 0 if self.dim() == 1 else 1
    counts = target != ignore_index
    places = target.where(counts, pt.zeros_like(target))
    part = counts.to(self.dtype)
    if weight is not None:
        part = part * weight[places]
    g = grad_output / total_weight if reduction == 1 else grad_output
    values = (-part * g).unsqueeze(dim)
    return pt.zeros_like(self).scatter(dim, places.unsqueeze(dim), values)


# Activations.


def _activation_backward(name: str) -> Callable[..., Any]:
    def backward(grad_output: Any, self: Any, *rest: Any) -> Any:
        """Return the gradient of an activation by its input."""
        function: Any = getattr(pt.nn.functional, name)
        return _gradients(lambda x: function(x, *rest), (self,), grad_output)[0]

    return backward


def _leaky_relu_backward(
    grad_output: Any, self: Any, negative_slope: Any, self_is_result: bool
) -> Any:
    """Return the gradient of `leaky_relu`, by its input or its result."""
    return pt.where(self > 0, grad_output, grad_output * negative_slope)


def _elu_backward(
    grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
    self_or_result: Any,
) -> Any:  # fmt: skip
    """Return the gradient of `elu`, by its input or its result."""
    x, low = self_or_result, alpha * scale
    below = (x + low) * input_scale if is_result else (x * input_scale).exp() * (input_scale * low)
    return grad_output * pt.where(x <= 0, below, pt.full_like(x, scale))


def _log_sigmoid_backward(grad_output: Any, self: Any, buffer: Any) -> Any:
    """Return the gradient of `logsigmoid`."""
    return grad_output * pt.sigmoid(-self)


def _prelu_kernel_backward(grad_output: Any, self: Any, weight: Any) -> tuple[Any, Any]:
    """Return the gradients of `prelu` by its input, and by a weight for each element."""
    above = self > 0
    by_weight = pt.where(above, pt.zeros_like(grad_output), self * grad_output)
    return pt.where(above, grad_output, weight * grad_output), by_weight


# Parts of tensors.


def _slice_backward(
    grad_output: Any, input_sizes: Any, dim: int, start: Any, end: Any, step: int
) -> Any:
    """Return zeros, but the gradient of the part that `slice` takes."""
    zeros = grad_output.new_zeros(list(input_sizes))
    return pt.slice_scatter(zeros, grad_output, dim, start, end, step)


def _select_backward(grad_output: Any, input_sizes: Any, dim: int, index: int) -> Any:
    """Return zeros, but the gradient of the part that `select` takes."""
    return pt.select_scatter(grad_output.new_zeros(list(input_sizes)), grad_output, dim, index)


def _diagonal_backward(
    grad_output: Any, input_sizes: Any, offset: int, dim1: int, dim2: int
) -> Any:
    """Return zeros, but the gradient of the part that `diagonal` takes."""
    zeros = grad_output.new_zeros(list(input_sizes))
    return pt.diagonal_scatter(zeros, grad_output, offset, dim1, dim2)


def _flash_attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout_p: float,
    is_causal: bool, *, attn_mask: Any = None, scale: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the gradients of attention by queries, keys and values."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        attention = pt.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale)

    found = _gradients(attend, (query, key, value), grad_out)
    # In the memory order of what the operator gives: heads within positions.
    q, k, v = (g.transpose(1, 2).contiguous().transpose(1, 2) for g in found)
    return q, k, v


def rnn_layer(
    input: Any, weight0: Any, weight1: Any, weight2: Any, weight3: Any, hx_: Any, cx_: Any,
    reverse: bool, batch_sizes: Any, mode: int, hidden_size: int, num_layers: int,
    has_biases: bool, bidirectional: bool, batch_first: bool, train: bool,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the outputs of one layer of an LSTM, its last states, and an empty workspace."""
    x = input.flip(0) if reverse else input
    weights = (weight0, weight1, weight2, weight3) if has_biases else (weight0, weight1)
    states = hx_.unsqueeze(0), cx_.unsqueeze(0)
    y, h, c = pt.lstm(x, states, weights, has_biases, 1, 0.0, train, False, False)
    y = y.flip(0) if reverse else y
    return y, h[0], c[0], pt.empty(0, dtype=pt.uint8)


def _rnn_layer_backward(
    input: Any, weight1: Any, weight2: Any, weight3: Any, weight4: Any, hx_: Any, cx_tmp: Any,
    output: Any, hy_: Any, cy_: Any, grad_output: Any, grad_hy: Any, grad_cy: Any, reverse: bool,
    mode: int, hidden_size: int, num_layers: int, has_biases: bool, train: bool,
    bidirectional: bool, batch_sizes: Any, batch_first: bool, workspace: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the gradients of `mkldnn_rnn_layer` by its tensors."""
    given = (input, weight1, weight2, weight3, weight4, hx_, cx_tmp)
    places = [i for i in range(7) if has_biases or i not in (3, 4)]
    grads = [
        pt.zeros_like(y) if g is None else g
        for g, y in ((grad_output, output), (grad_hy, hy_), (grad_cy, cy_))
    ]

    def run(*leaves: Any) -> Any:
        full = list(given)
        for i, t in zip(places, leaves, strict=True):
            full[i] = t
        rest = reverse, batch_sizes, mode, hidden_size, num_layers, has_biases
        run_layer: Callable[..., Any] = rnn_layer
        return run_layer(*full, *rest, bidirectional, batch_first, train)[:3]

    found: list[Any] = [None] * 7
    made = _gradients(run, [given[i] for i in places], grads)
    for i, g in zip(places, made, strict=True):
        found[i] = g
    return tuple(found)


# By the names of operators.
BACKWARD: dict[str, Callable[..., Any]] = {
    "_adaptive_avg_pool2d_backward": _adaptive_avg_pool_backward(2),
    "_adaptive_avg_pool3d_backward": _adaptive_avg_pool_backward(3),
    "_convolution_double_backward": _convolution_double_backward,
    "_prelu_kernel_backward": _prelu_kernel_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _flash_attention_backward,
    "avg_pool2d_backward": _avg_pool_backward(2),
    "avg_pool3d_backward": _avg_pool_backward(3),
    "binary_cross_entropy_backward": _binary_cross_entropy_backward,
    "convolution_backward": _convolution_backward,
    "diagonal_backward": _diagonal_backward,
    "elu_backward": _elu_backward,
    "embedding_dense_backward": _embedding_dense_backward,
    "gelu_backward": _gelu_backward,
    "leaky_relu_backward": _leaky_relu_backward,
    "log_sigmoid_backward": _log_sigmoid_backward,
    "mkldnn_rnn_layer_backward": _rnn_layer_backward,
    "max_pool2d_with_indices_backward": _max_pool_with_indices_backward,
    "max_pool3d_with_indices_backward": _max_pool_with_indices_backward,
    "native_batch_norm_backward": _native_batch_norm_backward,
    "native_group_norm_backward": _native_group_norm_backward,
    "native_layer_norm_backward": _native_layer_norm_backward,
    "nll_loss2d_backward": _nll_loss_backward,
    "nll_loss_backward": _nll_loss_backward,
    "select_backward": _select_backward,
    "sigmoid_backward": _sigmoid_backward,
    "silu_backward": _silu_backward,
    "slice_backward": _slice_backward,
    "tanh_backward": _tanh_backward,
    "threshold_backward": _threshold_backward,
    **{
        f"{name}_backward": _activation_backward(name)
        for name in "glu hardsigmoid hardswish hardtanh mish softplus".split()
    },
    **{
        f"{name}_backward": _loss_backward(name)
        for name in "huber_loss mse_loss smooth_l1_loss".split()
    },
    **{
        f"{kind}_pad{n}d_backward": _pad_backward(mode)
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for n in (1, 2, 3)
    },
    **{
        f"upsample_{name}_backward": _upsample_backward(f"upsample_{name}", "nearest" not in name)
        for name in """nearest1d nearest2d nearest3d linear1d bilinear2d trilinear3d
        bicubic2d""".split()
    },
}
for _function in BACKWARD.values():
    # A mode is given what computes it within `backward`.
    vars(_function)["_is_part"] = True
