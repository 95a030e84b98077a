"""Operators of PyTorch's graphs that are attributes, methods or other calls here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensorlib as pt

__all__ = ["FORMS"]


def _upsample(name: str, corners: bool) -> Callable[..., Any]:
    def form(x: Any, size: Any, *rest: Any, **kwargs: Any) -> Any:
        function = getattr(pt._C._nn, name)
        rest = (*rest, *kwargs.values())
        aligned = rest[:1] if corners else ()
        scales = rest[len(aligned) :]
        # Either the sizes and maybe a factor for each dimension, or one list of factors.
        if len(scales) == 1 and isinstance(scales[0], (list, tuple)):
            scales = tuple(scales[0])
        elif scales == (None,):
            scales = ()
        if size is None:
            size = [int(n * s) for n, s in zip(x.shape[2:], scales, strict=True)]
        return function(x, list(size), *aligned, *scales)

    return form


def _sym_size(x: Any, dim: int | None = None) -> Any:
    return x.size() if dim is None else x.size(dim)


def _layer_norm(
    x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    return pt.layer_norm(x, shape, weight, bias, eps)


def _assert_scalar(condition: Any, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _index_put_(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write at the places that tensors say; dimensions without one are taken whole."""
    if all(i is not None for i in indices):
        return x.index_put_(tuple(indices), values, accumulate)
    key = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        whole = pt.zeros_like(x)
        whole[key] = values
        return x.add_(whole)
    x[key] = values
    return x


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return _index_put_(x.clone(), indices, values, accumulate)


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    options = {k: v for k, v in kwargs.items() if k not in ("layout", "pin_memory")}
    return x.to(*args, **options)


def _view(name: str) -> Callable[..., Any]:
    return lambda x: getattr(x, name)


def _einsum(text: str, tensors: Any, *, path: Any = None) -> Any:
    return pt.einsum(text, *tensors)


def _slice_scatter(
    x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return pt.slice_scatter(x, src, dim, start, end, step)


def _normed(*args: Any) -> Any:
    x, weight, bias, mean, var, momentum, eps = args
    y = pt.batch_norm(x, weight, bias, mean, var, False, momentum, eps, False)
    return y, pt.empty(0, dtype=x.dtype), pt.empty(0, dtype=x.dtype)


def _max_pool_with_indices(n: int) -> Callable[..., Any]:
    def form(
        x: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:  # fmt: skip
        pool: Any = getattr(pt.nn.functional, f"max_pool{n}d")
        # An empty stride means that of the window.
        step = None if stride in ((), []) else stride
        return pool(x, kernel_size, step, padding, dilation, ceil_mode, return_indices=True)

    return form


def _unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """All three results, of which those that are not asked for are empty."""
    values, inverse, counts = pt._C.unique_consecutive(x, True, True, dim)
    none = pt.empty(0, dtype=pt.int64, device=x.device)
    return values, inverse if return_inverse else none, counts if return_counts else none


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    return pt.convolution(
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _attention(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    """Attention, and the logarithm of what each row of weights was divided by."""
    made = pt.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-1, -2)).float() * factor
    if is_causal:
        seen = pt.ones(scores.shape[-2:], dtype=pt.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    if attn_mask is not None:
        hidden = attn_mask.dtype is pt.bool
        scores = scores.masked_fill(~attn_mask, float("-inf")) if hidden else scores + attn_mask
    return made, scores.logsumexp(-1)


def _unsafe_split(x: Any, split_size: int, dim: int = 0) -> Any:
    """Parts that may be written to: they are not views."""
    return tuple(t.clone() for t in x.split(split_size, dim))


def _batch_norm_legit(x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    """Batch norm with running statistics or without, by how many arguments there are."""
    running = rest[:-3] or (None, None)
    return tuple(pt.native_batch_norm(x, weight, bias, *running, *rest[-3:]))


def _batch_norm_functional(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    """Batch norm, and the running statistics after it."""
    kept = mean.clone(), var.clone()
    return (*pt.native_batch_norm(x, weight, bias, *kept, training, momentum, eps), *kept)


def _averaged(name: str, place: int) -> Callable[..., Any]:
    """Return a loss whose reduction is the mean, as of PyTorch's operators, unless one is given."""

    def form(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place:
            kwargs.setdefault("reduction", 1)
        return getattr(pt, name)(*args, **kwargs)

    return form


FORMS: dict[str, Callable[..., Any]] = {
    "H": _view("H"),
    "_assert_scalar": _assert_scalar,
    "_local_scalar_dense": lambda x: x.item(),
    "_native_batch_norm_legit": _batch_norm_legit,
    "_native_batch_norm_legit_functional": _batch_norm_functional,
    "_native_batch_norm_legit_no_training": _normed,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "binary_cross_entropy_with_logits": _averaged("binary_cross_entropy_with_logits", 4),
    "cosine_embedding_loss": _averaged("cosine_embedding_loss", 4),
    "ctc_loss": _averaged("ctc_loss", 5),
    "einsum": _einsum,
    "hinge_embedding_loss": _averaged("hinge_embedding_loss", 3),
    "imag": _view("imag"),
    "index_put": _index_put,
    "index_put_": _index_put_,
    "item": lambda x: x.item(),
    "kl_div": _averaged("kl_div", 2),
    "margin_ranking_loss": _averaged("margin_ranking_loss", 4),
    "layer_norm": _layer_norm,
    "lift_fresh_copy": lambda x: x.clone(),
    "mT": _view("mT"),
    "mH": _view("mH"),
    "matrix_H": _view("H"),
    "max_pool2d_with_indices": _max_pool_with_indices(2),
    "max_pool3d_with_indices": _max_pool_with_indices(3),
    "numpy_T": _view("T"),
    "real": _view("real"),
    "sym_numel": lambda x: x.numel(),
    "sym_size": _sym_size,
    "sym_stride": lambda x, dim=None: x.stride() if dim is None else x.stride(dim),
    "to": _to,
    "triplet_margin_loss": _averaged("triplet_margin_loss", 7),
    "unique_consecutive": _unique_consecutive,
    "unsafe_split": _unsafe_split,
    "unfold": lambda x, dimension, size, step: x.unfold(dimension, size, step),
    "upsample_bicubic2d": _upsample("upsample_bicubic2d", True),
    "upsample_bilinear2d": _upsample("upsample_bilinear2d", True),
    "upsample_linear1d": _upsample("upsample_linear1d", True),
    "upsample_nearest1d": _upsample("upsample_nearest1d", False),
    "upsample_nearest2d": _upsample("upsample_nearest2d", False),
    "upsample_nearest3d": _upsample("upsample_nearest3d", False),
    "upsample_trilinear3d": _upsample("upsample_trilinear3d", True),
    "_upsample_nearest_exact1d": _upsample("_upsample_nearest_exact1d", False),
    "_upsample_nearest_exact2d": _upsample("_upsample_nearest_exact2d", False),
}
