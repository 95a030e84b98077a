"""Weights that stay orthogonal, of norm given apart, or of spectral norm 1."""

from __future__ import annotations

from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import functional as F
from ..module import Module
from . import parametrize
from .spectral_norm import TRANSPOSED
from .weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _weight(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _exponential(x: Tensor) -> Tensor:
    """Return the exponential of square matrices, by halving, a series of degree 16, and squaring.

    With at most 1/2 in norm the series leaves out less than 2^-17 / 17! of the result.
    """
    norm = float(pt.linalg.matrix_norm(x.detach(), 1).amax()) if x.numel() else 0.0
    halvings = max(0, int(norm).bit_length() + 1)
    x = x / 2.0**halvings
    one = pt.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    total: Tensor = one + x / 16
    for k in range(15, 0, -1):
        total = one + (x @ total) / k
    for _ in range(halvings):
        total = total @ total
    return total


def _reflect(a: Tensor, tau: Tensor) -> Tensor:
    """Return the product of the reflections 1 - tau v v^H whose v are columns below a diagonal."""
    n, k = a.shape[-2:]
    one = pt.eye(n, k, dtype=a.dtype, device=a.device)
    v = a.tril(-1) + one
    q = one.expand(*a.shape[:-2], n, k)
    for i in range(k - 1, -1, -1):
        column = v[..., :, i : i + 1]
        q = q - tau[..., i : i + 1, None] * column @ (column.mH @ q)
    return q


def _reflections(q: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns and factors of reflections whose product begins with `q`'s columns."""
    r, n, k = q.clone(), q.shape[-2], q.shape[-1]
    tau = r.new_zeros(*q.shape[:-2], k)
    columns = pt.zeros_like(r)
    for i in range(min(n, k)):
        x = r[..., i:, i : i + 1].clone()
        norm = pt.linalg.vector_norm(x, dim=-2, keepdim=True)
        head = x[..., :1, :].clone()
        beta = -pt.where(head < 0, -norm, norm)
        below = pt.linalg.vector_norm(x[..., 1:, :], dim=-2, keepdim=True) > 0
        v = pt.where(below, x / pt.where(below, head - beta, pt.ones_like(head)), pt.zeros_like(x))
        v[..., :1, :] = 1
        t = pt.where(below, (beta - head) / beta, pt.zeros_like(head))
        r[..., i:, i:] = r[..., i:, i:] - t * v @ (v.mH @ r[..., i:, i:])
        columns[..., i + 1 :, i : i + 1] = v[..., 1:, :]
        tau[..., i] = t[..., 0, 0]
    return columns + r.triu(), tau


def _make_orthogonal(a: Tensor) -> Tensor:
    """Return the orthogonal factor of matrices, with a positive diagonal in the other."""
    q, r = pt.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    one = pt.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    eps = 10.0 * q.shape[-2] * pt.finfo(q.dtype).eps
    return pt.allclose(q.mH @ q, one.expand(*q.shape[:-2], *one.shape), atol=eps)


class _Orthogonal(Module):
    base: Any

    def __init__(self, shape: Any, orthogonal_map: str, trivialized: bool) -> None:
        super().__init__()
        self.shape = shape
        self.orthogonal_map = orthogonal_map
        self.trivialized = trivialized
        if trivialized:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        n, k = X.shape[-2:]
        transposed = n < k
        if transposed:
            X, n, k = X.mT, k, n  # noqa: N806
        if self.orthogonal_map == "householder":
            below = X.tril(-1)
            tau = 2.0 / (1.0 + (below * below.conj()).sum(-2))
            q = _reflect(below, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()  # noqa: N806
            if n != k:
                X = pt.cat([X, X.new_zeros(*X.shape[:-2], n, n - k)], -1)  # noqa: N806
            a = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                q = _exponential(a)
            else:
                one = pt.eye(n, dtype=a.dtype, device=a.device)
                q = pt.linalg.solve(one - a / 2, one + a / 2)
            q = q[..., :k] if n != k else q
        if self.trivialized and self.base is not None:
            q = self.base @ q
        return q.mT if transposed else q

    @pt.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:  # noqa: N803
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        q, start = Q, pt.zeros_like(Q)
        n, k = q.shape[-2:]
        transposed = n < k
        if transposed:
            q, n, k = q.mT, k, n
        if not self.trivialized:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            a, tau = _reflections(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau == 0] *= -1
            return a.mT if transposed else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            more = pt.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(pt.cat([q, more], -1))
        self.base = q
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Keep matrices of a module orthogonal, or their columns or rows, whichever are fewer.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str, default "weight"
        Of at least two dimensions, the last two of which are the matrix.
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        How an orthogonal matrix is made of a matrix; by default ``matrix_exp`` for square ones and
        ``householder`` for others.
    use_trivialization : bool, default True
        Whether the matrix is made relative to one that is kept, which training finds easier.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        There is no such parameter, or no such map, or it has fewer than two dimensions.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> q = nn.utils.parametrizations.orthogonal(nn.Linear(3, 5)).weight
    >>> torch.allclose(q.mT @ q, torch.eye(3), atol=1e-5)
    True

    Notes
    -----
    Lezcano-Casado 2019, arXiv:1909.09501.
    """
    weight = _weight(module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    square = weight.shape[-1] == weight.shape[-2]
    kind = orthogonal_map or ("matrix_exp" if square or weight.is_complex() else "householder")
    if kind not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    if kind == "householder" and weight.is_complex():
        raise ValueError("The householder parametrization does not support complex tensors.")
    made = _Orthogonal(weight.shape, kind, use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Train the norms of a weight's slices apart from their directions.

    Parameters
    ----------
    module : Module
        Changed in place; the weight is computed from ``original0``, the norms, and ``original1``.
    name : str, default "weight"
        The parameter.
    dim : int or None, default 0
        The dimension of the slices; None for one norm of all.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> net.parametrizations.weight.original0.shape
    torch.Size([40, 1])

    Notes
    -----
    Salimans and Kingma 2016, arXiv:1602.07868.
    """
    made = _WeightNorm(dim)
    parametrize.register_parametrization(module, name, made, unsafe=True)

    def older(state: Any, prefix: str, *rest: Any) -> None:
        # The names of `torch.nn.utils.weight_norm`.
        for old, new in ((f"{name}_g", "original0"), (f"{name}_v", "original1")):
            if prefix + old in state:
                state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(prefix + old)

    module._register_load_state_dict_pre_hook(older)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if dim >= weight.dim() or dim < -weight.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, "
                f"{weight.dim() - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.dim() > 1:
            matrix = self._matrix(weight)
            h, w = matrix.shape
            u, v = matrix.new_empty(h).normal_(0, 1), matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.transpose(0, self.dim).flatten(1) if self.dim else weight.flatten(1)

    @pt.no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        for _ in range(times):
            self._u.copy_(F.normalize(pt.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(pt.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # a later call changes them in place
        return weight / pt.vdot(u, pt.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value, estimated a little better at each call.

    Parameters
    ----------
    module : Module
        Changed in place.
    name : str, default "weight"
        The parameter.
    n_power_iterations : int, default 1
        Steps of the estimate at each call in training mode.
    eps : float, default 1e-12
        Kept away from in divisions.
    dim : int, optional
        The dimension of the outputs; by default 1 for transposed convolutions, else 0.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> net = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
    >>> bool(abs(torch.linalg.matrix_norm(net.weight, 2) - 1) < 0.2)
    True

    Notes
    -----
    Miyato et al. 2018, arXiv:1802.05957.
    """
    weight = _weight(module, name)
    dim = (1 if isinstance(module, TRANSPOSED) else 0) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
