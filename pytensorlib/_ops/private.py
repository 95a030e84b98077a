"""Functions of `torch` with an underscore: public ones by PyTorch's private signature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytensorlib as pt

from .. import _C
from ..autograd import forward_ad

__all__ = [
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "_add_relu",
    "_add_relu_",
    "_addmm_activation",
    "_aminmax",
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_cast_Byte",
    "_cast_Char",
    "_cast_Double",
    "_cast_Float",
    "_cast_Half",
    "_cast_Int",
    "_cast_Long",
    "_cast_Short",
    "_compute_linear_combination",
    "_conj",
    "_conj_copy",
    "_conj_physical",
    "_convolution",
    "_convolution_mode",
    "_debug_has_internal_overlap",
    "_dim_arange",
    "_disable_dynamo",
    "_efficientzerotensor",
    "_embedding_bag",
    "_embedding_bag_forward_only",
    "_euclidean_dist",
    "_fft_c2c",
    "_fft_c2r",
    "_fft_r2c",
    "_functional_assert_async",
    "_fused_rms_norm",
    "_grid_sampler_2d_cpu_fallback",
    "_grouped_mm",
    "_has_compatible_shallow_copy_type",
    "_index_put_impl_",
    "_int_mm",
    "_is_functional_tensor",
    "_is_zerotensor",
    "_lazy_clone",
    "_linalg_det",
    "_linalg_eigh",
    "_linalg_slogdet",
    "_linalg_svd",
    "_log_softmax_backward_data",
    "_logcumsumexp",
    "_lu_with_info",
    "_make_dual",
    "_masked_scale",
    "_masked_softmax",
    "_neg_view",
    "_neg_view_copy",
    "_nnpack_available",
    "_pack_padded_sequence",
    "_pad_packed_sequence",
    "_pin_memory",
    "_prelu_kernel",
    "_print",
    "_reshape_from_tensor",
    "_safe_softmax",
    "_scaled_dot_product_attention_math",
    "_segment_reduce",
    "_shape_as_tensor",
    "_softmax_backward_data",
    "_stack",
    "_to_cpu",
    "_transform_bias_rescale_qkv",
    "_trilinear",
    "_unique",
    "_unique2",
    "_unpack_dual",
    "_unsafe_index",
    "_unsafe_index_put",
    "_use_cudnn_ctc_loss",
    "_use_cudnn_rnn_flatten_weight",
    "_weight_norm",
    "_weight_norm_interface",
]

_segment_reduce, _stack, _logcumsumexp = _C.segment_reduce, _C.stack, _C.logcumsumexp
_adaptive_avg_pool2d = _C._nn.adaptive_avg_pool2d
_adaptive_avg_pool3d = _C._nn.adaptive_avg_pool3d
_embedding_bag = _embedding_bag_forward_only = _C.embedding_bag
_grid_sampler_2d_cpu_fallback = _C.grid_sampler_2d
_euclidean_dist = _C.cdist

# What programs assert.


def _assert_async(input: Any, assert_msg: str | None = None) -> None:
    """Raise unless a tensor of one element is not zero."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _functional_assert_async(input: Any, assert_msg: str, dep_token: Any) -> Any:
    """Raise unless a tensor of one element is not zero; return the token."""
    _assert_async(input, assert_msg)
    return dep_token.clone()


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise unless a number is not zero."""
    if not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(
    a: Any,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """Raise unless a tensor is laid out as expected."""
    for what, want, got in (
        ("sizes", size, list(a.shape)),
        ("strides", stride, list(a.stride()) if stride is not None else None),
        ("dtype", dtype, a.dtype),
        ("device", device and pt.device(device), a.device),
        ("layout", layout, a.layout),
    ):
        if want is not None and (list(want) if isinstance(want, (tuple, list)) else want) != got:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {want}, Got: {got}")


# Element types, facts and copies.


def _cast(name: str, dtype: Any) -> Any:
    def cast(self: Any, non_blocking: bool = False) -> Any:
        return self.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return a tensor as {dtype}."
    return cast


_cast_Byte, _cast_Char = _cast("_cast_Byte", _C.uint8), _cast("_cast_Char", _C.int8)
_cast_Short, _cast_Int = _cast("_cast_Short", _C.int16), _cast("_cast_Int", _C.int32)
_cast_Long, _cast_Half = _cast("_cast_Long", _C.int64), _cast("_cast_Half", _C.float16)
_cast_Float, _cast_Double = _cast("_cast_Float", _C.float32), _cast("_cast_Double", _C.float64)


def _shape_as_tensor(self: Any) -> Any:
    """Return the sizes as a tensor of integers."""
    return pt.tensor(list(self.shape), dtype=pt.int64)


def _reshape_from_tensor(self: Any, shape: Any) -> Any:
    """Return a tensor with the shape that another has as its elements."""
    return self.reshape(shape.tolist())


def _dim_arange(like: Any, dim: int) -> Any:
    """Return the positions along a dimension."""
    return pt.arange(like.shape[dim], device=like.device)


def _debug_has_internal_overlap(self: Any) -> int:
    """Return 1 where elements share memory, 0 where none do, 2 where that is not told cheaply."""
    if self.numel() == 0 or self.is_contiguous():
        return 0
    pairs = [(s, n) for n, s in zip(self.shape, self.stride(), strict=True) if n > 1]
    if any(stride == 0 for stride, _ in pairs):
        return 1
    reach = 1
    for stride, n in sorted(pairs):
        if stride < reach:
            return 2
        reach = stride * n
    return 0


def _has_compatible_shallow_copy_type(self: Any, from_: Any) -> bool:
    """Return whether a tensor's content can be put in the place of another's."""
    return bool(self.layout == from_.layout and self.device.type == from_.device.type)


def _is_zerotensor(self: Any) -> bool:
    """Return False: zeros have memory here."""
    return False


def _is_functional_tensor(t: Any) -> bool:
    """Return False: no tensor is behind another here."""
    return False


def _efficientzerotensor(*size: Any, **options: Any) -> Any:
    """Return zeros."""
    return pt.zeros(*size, **options)


def _lazy_clone(self: Any) -> Any:
    """Return a copy."""
    return self.clone()


def _to_cpu(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return tensors on the CPU."""
    return tuple(t.cpu() for t in tensors)


def _pin_memory(self: Any, device: Any = None) -> Any:
    """Return the tensor, as `pin_memory` does."""
    return self.pin_memory()


def _print(s: str) -> None:
    """Print a text."""
    print(s)


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """Return a function as it is: calls are recorded as they run."""
    return (lambda f: f) if fn is None else fn


def _conj(self: Any) -> Any:
    """Return conjugates, computed at once."""
    return self.conj()


def _conj_physical(self: Any) -> Any:
    """Return conjugates."""
    return _C.conj_physical(self)


_conj_copy = _conj_physical


def _neg_view(self: Any) -> Any:
    """Return negative numbers, computed at once."""
    return -self


_neg_view_copy = _neg_view


def _make_dual(primal: Any, tangent: Any, level: int) -> Any:
    """Return a tensor that carries a tangent."""
    return forward_ad.make_dual(primal, tangent, level=level)


def _unpack_dual(dual: Any, level: int) -> Any:
    """Return a tensor without its tangent, and the tangent."""
    return forward_ad.unpack_dual(dual, level=level)


def _nnpack_available() -> bool:
    """Return False: the kernels are this package's own."""
    return False


def _use_cudnn_ctc_loss(*args: Any) -> bool:
    """Return False: the kernels are this package's own."""
    return False


_use_cudnn_rnn_flatten_weight = _use_cudnn_ctc_loss

# Pointwise functions, products and reductions.


def _add_relu(self: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Return the positive part of a sum."""
    return pt.clamp_min(pt.add(self, other, alpha=alpha), 0, out=out)


def _add_relu_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Make a tensor the positive part of its sum with another."""
    return self.add_(other, alpha=alpha).relu_()


def _addmm_activation(
    self: Any,
    mat1: Any,
    mat2: Any,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    use_gelu: bool = False,
    out: Any = None,
) -> Any:
    """Return an activation of a product and a sum."""
    y = pt.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    y = pt.nn.functional.gelu(y) if use_gelu else y.relu()
    return y if out is None else out.resize_(y.shape).copy_(y)


def _aminmax(self: Any, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    """Return the least and the greatest elements."""
    return tuple(pt.aminmax(self, dim=dim, keepdim=keepdim))  # type: ignore[return-value]


def _prelu_kernel(self: Any, weight: Any) -> Any:
    """Return a tensor whose negative elements are multiplied."""
    return pt.where(self > 0, self, weight * self)


def _masked_scale(self: Any, mask: Any, scale: float) -> Any:
    """Return a tensor times a mask and a number."""
    return self * mask.to(self.dtype) * scale


def _compute_linear_combination(input: Any, coefficients: Any, *, out: Any = None) -> Any:
    """Return sums of the slices of `input`, each times a number of the rows of `coefficients`."""
    y = pt.tensordot(coefficients.to(input.dtype), input, dims=([1], [0]))
    return y if out is None else out.copy_(y)


def _int_mm(self: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the product of matrices of int8 as int32."""
    for name, t in (("self", self), ("mat2", mat2)):
        if t.dtype != _C.int8 or t.dim() != 2:
            raise RuntimeError(
                f"_int_mm: Expected {name} to be a matrix of int8, got {t.dtype} of dimension "
                f"{t.dim()}"
            )
    # Sums of int8's products are exact in int32 up to 2^17 of them.
    return pt.mm(self.int(), mat2.int(), out=out)


def _trilinear(
    i1: Any,
    i2: Any,
    i3: Any,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:
    """Return the product of three tensors, given dimensions of size 1, summed over others."""
    factors = []
    for x, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in sorted(dims):
            x = x.unsqueeze(dim)
        factors.append(x)
    y = factors[0] * factors[1] * factors[2]
    return y.sum(list(sumdim)) if sumdim else y


def _unique(self: Any, sorted: bool = True, return_inverse: bool = False) -> tuple[Any, Any]:
    """Return the distinct elements, and where each element is among them, where that is asked."""
    values, inverse, _ = _unique2(self, sorted, return_inverse)
    return values, inverse


def _unique2(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, Any, Any]:
    """Return the distinct elements, and of positions and counts what is asked."""
    values, inverse, counts = _C._unique2(self, sorted, return_inverse, return_counts)
    none = pt.empty(0, dtype=pt.int64, device=self.device)
    return values, inverse if return_inverse else none, counts if return_counts else none


def _unsafe_index(self: Any, indices: Sequence[Any]) -> Any:
    """Return what stands at some indices; they are checked all the same."""
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _unsafe_index_put(
    self: Any, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Any:
    """Return a copy with values put at some indices; they are checked all the same."""
    return self.index_put(tuple(indices), values, accumulate)


def _index_put_impl_(
    self: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    """Put values at some indices; they are checked in any case."""
    return self.index_put_(tuple(indices), values, accumulate)


def _grouped_mm(
    self: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Return the product of each group of rows with a matrix of its own."""
    return pt.nn.functional.grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


# Sparse tensors.


def _dimI(self: Any) -> int:  # noqa: N802  (PyTorch's name)
    """Return how many dimensions have coordinates."""
    return self.sparse_dim()


def _dimV(self: Any) -> int:  # noqa: N802  (PyTorch's name)
    """Return how many dimensions the values of an element have."""
    return self.dense_dim()


def _to_dense(self: Any, dtype: Any = None, masked_grad: bool | None = None) -> Any:
    """Return all elements."""
    return self.to_dense() if dtype is None else self.to_dense(dtype)


def _to_sparse(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a sparse tensor, as `to_sparse` does."""
    return self.to_sparse(*args, **kwargs)


def _to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Return a matrix by rows."""
    return self.to_sparse_csr(dense_dim)


def _to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """Return a matrix by columns."""
    return self.to_sparse_csc(dense_dim)


def _to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return a matrix of blocks by rows."""
    return self.to_sparse_bsr(blocksize, dense_dim)


def _to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return a matrix of blocks by columns."""
    return self.to_sparse_bsc(blocksize, dense_dim)


# Layers.


def _convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *switches: bool,
) -> Any:
    """Return a convolution; the switches are those of libraries that are not used here."""
    return _C.convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def _convolution_mode(
    input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    """Return a convolution with padding "same" or "valid"."""
    name = f"conv{weight.dim() - 2}d"
    return getattr(pt.nn.functional, name)(input, weight, bias, stride, padding, dilation, groups)


def _safe_softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    """Return the softmax, with zeros for a line of which nothing is finite."""
    y = self.softmax(dim, dtype=dtype)
    return y.masked_fill((self == -math.inf).all(dim, keepdim=True), 0)


def _masked_softmax(
    self: Any, mask: Any, dim: int | None = None, mask_type: int | None = None
) -> Any:
    """Return the softmax of the elements where a mask is False, the others zero.

    A mask of type 0 is that of queries and keys, one of type 1 of keys, for all of a batch.
    """
    if self.dim() == 4 and mask.dim() == 2:
        mask = mask if mask_type == 0 else mask.view(mask.shape[0], 1, 1, mask.shape[1])
    return self.masked_fill(mask, -math.inf).softmax(-1 if dim is None else dim)


def _softmax_backward_data(
    grad_output: Any, output: Any, dim: int, input_dtype: Any, *, grad_input: Any = None
) -> Any:
    """Return the gradient of `softmax` by its input, of that by its output and the output."""
    y = grad_output * output
    y = (y - output * y.sum(dim, keepdim=True)).to(input_dtype)
    return y if grad_input is None else grad_input.copy_(y)


def _log_softmax_backward_data(
    grad_output: Any, output: Any, dim: int, input_dtype: Any, *, out: Any = None
) -> Any:
    """Return the gradient of `log_softmax` by its input, of that by its output and the output."""
    y = (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)
    return y if out is None else out.copy_(y)


def _weight_norm_interface(v: Any, g: Any, dim: int = 0) -> tuple[Any, Any]:
    """Return `v` with its slices' norms made `g`, and the norms that they had."""
    norms = pt.norm_except_dim(v, 2, dim)
    return v * (g / norms), norms


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    """Return `v` with its slices' norms made `g`."""
    return _weight_norm_interface(v, g, dim)[0]


def _fused_rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any, eps: float | None
) -> tuple[Any, Any]:
    """Return a tensor divided by its root mean square, and one over that."""
    dims = list(range(-len(normalized_shape), 0))
    eps = pt.finfo(input.dtype).eps if eps is None else eps
    rstd = (input.square().mean(dims, keepdim=True) + eps).rsqrt()
    return pt.nn.functional.rms_norm(input, list(normalized_shape), weight, eps), rstd


def _transform_bias_rescale_qkv(qkv: Any, qkv_bias: Any, num_heads: int) -> tuple[Any, Any, Any]:
    """Return queries, keys and values by head, with their bias, and queries scaled."""
    batch, length, width = qkv.shape
    heads = (qkv + qkv_bias).view(batch, length, 3, num_heads, width // 3 // num_heads)
    q, k, v = (x.contiguous() for x in heads.permute(2, 0, 3, 1, 4))
    return q / math.sqrt(q.shape[-1]), k, v


def _scaled_dot_product_attention_math(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Any = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Any, Any]:
    """Return attention and its weights."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * (scale or 1 / math.sqrt(query.shape[-1]))
    if is_causal:
        attn_mask = pt.ones(scores.shape[-2:], dtype=_C.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == _C.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = _safe_softmax(scores, -1)
    if dropout_mask is not None:
        kept = weights * dropout_mask.to(weights.dtype) / (1 - dropout_p)
    else:
        kept = pt.dropout(weights, dropout_p, dropout_p > 0)
    return kept @ value, weights


def _pack_padded_sequence(input: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    """Return sorted sequences one step after the other, and how many have each step."""
    packed = pt.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(
    data: Any, batch_sizes: Any, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Any, Any]:
    """Return sequences that were packed, padded, and their lengths."""
    rnn = pt.nn.utils.rnn
    whole = total_length if total_length > 0 else None
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding_value, whole)


# Transforms and factorizations.

_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")


def _fft_c2c(self: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Return a Fourier transform, times 1, 1/sqrt(n) or 1/n."""
    if forward:
        return pt.fft.fftn(self, dim=dim, norm=_FORWARD[normalization])
    return pt.fft.ifftn(self, dim=dim, norm=_BACKWARD[normalization])


def _fft_r2c(self: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """Return a Fourier transform of real numbers, times 1, 1/sqrt(n) or 1/n."""
    transform = pt.fft.rfftn if onesided else pt.fft.fftn
    return transform(self, dim=dim, norm=_FORWARD[normalization])


def _fft_c2r(self: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """Return the real inverse of a Fourier transform, times 1, 1/sqrt(n) or 1/n."""
    sizes = [self.shape[d] for d in dim[:-1]] + [last_dim_size]
    return pt.fft.irfftn(self, s=sizes, dim=dim, norm=_BACKWARD[normalization])


class _LU(NamedTuple):
    LU: Any
    pivots: Any
    info: Any


class _Det(NamedTuple):
    result: Any
    LU: Any
    pivots: Any


class _LogDet(NamedTuple):
    sign: Any
    logabsdet: Any
    LU: Any
    pivots: Any


def _lu_with_info(self: Any, pivot: bool = True, check_errors: bool = True) -> Any:
    """Return factors, pivots and where the factorization failed."""
    return _LU(*pt.linalg.lu_factor_ex(self, pivot=pivot, check_errors=check_errors))


def _linalg_det(A: Any) -> Any:
    """Return a determinant, with the factors that it comes from."""
    return _Det(pt.linalg.det(A), *pt.linalg.lu_factor_ex(A)[:2])


def _linalg_slogdet(A: Any) -> Any:
    """Return a determinant's sign and logarithm, with the factors that they come from."""
    return _LogDet(*pt.linalg.slogdet(A), *pt.linalg.lu_factor_ex(A)[:2])


def _linalg_eigh(A: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    """Return eigenvalues, and eigenvectors or nothing."""
    if compute_v:
        return pt.linalg.eigh(A, UPLO)
    return pt.linalg.eigvalsh(A, UPLO), A.new_empty(0)


def _linalg_svd(
    A: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> Any:
    """Return singular values, and vectors or nothing."""
    if compute_uv:
        return pt.linalg.svd(A, full_matrices)
    return A.new_empty(0), pt.linalg.svdvals(A), A.new_empty(0)
