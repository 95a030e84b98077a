"""The operators that `torch.autocast` runs in each type."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

__all__ = ["LOWER", "REFUSED", "SINGLE", "SINGLE_UNLESS_TOLD", "STATE", "WIDEST", "rules"]

# What is done with the arguments of an operator.
LOWER, SINGLE, SINGLE_UNLESS_TOLD, WIDEST, STATE, REFUSED = range(6)

_PRODUCTS = """
    addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d einsum inner linalg_matmul linalg_matrix_power
    linalg_multi_dot linalg_vecdot linear matmul __matmul__ __rmatmul__ mm prelu
    scaled_dot_product_attention lstm matrix_power rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    _tensordot
"""
_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss hinge_embedding_loss
    huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    nll_loss nll_loss2d nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""
_CPU = {
    LOWER: _PRODUCTS,
    STATE: "gru gru_cell lstm_cell",
    SINGLE: _LOSSES
    + """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky
    cholesky_inverse cholesky_solve ctc_loss fractional_max_pool2d fractional_max_pool3d geqrf
    grid_sampler grid_sampler_2d grid_sampler_3d inverse lu_solve max_pool3d max_unpool2d
    max_unpool3d nanquantile orgqr ormqr pad pinverse polar prod qr quantile reflection_pad1d
    reflection_pad2d replication_pad1d replication_pad2d replication_pad3d stft svd trace
    triangular_solve view_as_complex
    fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2
    fft_irfftn fft_rfft fft_rfft2 fft_rfftn
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals
    linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq
    linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv
    linalg_tensorsolve
    """,
    WIDEST: "cat concat concatenate index_copy stack",
}
_GPU = {
    LOWER: _PRODUCTS + "addmv addr gru gru_cell lstm_cell mv",
    SINGLE: _LOSSES
    + """
    __pow__ __rdiv__ __rpow__ __rtruediv__ acos arccos arcsin asin cdist cosh cosine_similarity
    dist erfinv exp expm1 group_norm layer_norm log log10 log1p log2 logsumexp native_layer_norm
    pdist pow reciprocal renorm rms_norm rsqrt sinh softplus tan _upsample_bicubic2d_aa
    _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d upsample_bicubic2d upsample_bilinear2d upsample_linear1d
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """,
    SINGLE_UNLESS_TOLD: """
    cumprod cumsum linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax norm nuclear_norm
    frobenius_norm prod softmax sum
    """,
    WIDEST: """
    addcdiv addcmul atan2 arctan2 bilinear cat concat concatenate cross dot grid_sampler
    grid_sampler_2d grid_sampler_3d index_put linalg_cross scatter_add stack vdot
    """,
    REFUSED: "binary_cross_entropy",
}
# Where one name means different operators, and how the table tells them apart.
_PREFIXES = {f"{pt.__name__}._C._linalg": "linalg_", f"{pt.__name__}._C._fft": "fft_"}


def _contracts(equation: Any) -> bool:
    """Tell whether an equation multiplies and sums, which is what is done in few bits."""
    inputs, _, output = str(equation).replace("...", "").partition("->")
    terms = [set(term.strip()) for term in inputs.split(",")]
    shared = {i for k, term in enumerate(terms) for i in term if any(i in t for t in terms[:k])}
    return bool(shared - set(output))


# Where an operator has a rule only with some arguments.
_ONLY: dict[str, Callable[..., bool]] = {
    "einsum": lambda equation, *_: _contracts(equation),
    "inner": lambda x, y: min(x.ndim, y.ndim) > 0 and max(x.ndim, y.ndim) > 1,
    "matrix_power": lambda x, n: n > 1,
    "pad": lambda x, pad, mode="constant", *_: (
        mode == "replicate" or (mode == "reflect" and len(pad) < 6)
    ),
}


def _by_name(table: dict[int, str]) -> dict[str, int]:
    return {name: rule for rule, names in table.items() for name in names.split()}


_ON_CPU, _ON_GPU = _by_name(_CPU), _by_name(_GPU)


def rules(device: str) -> Callable[[Any, tuple], int | None]:
    """Return what tells the rule of a function on a kind of device, None where it has none.

    Parameters
    ----------
    device : str
        "cpu", or a GPU.

    Returns
    -------
    callable
        Takes a function of tensors and its positional arguments.
    """
    table = _ON_CPU if device == "cpu" else _ON_GPU

    def rule(func: Any, args: tuple) -> int | None:
        home, name = getattr(func, "__module__", None), getattr(func, "__name__", "")
        found = table.get(_PREFIXES.get(str(home), "") + name)
        if found is not None and name in _ONLY and len(args) > 1:
            with contextlib.suppress(AttributeError, TypeError):  # the operator says what is wrong
                return found if _ONLY[name](*args) else None
        return found

    return rule
