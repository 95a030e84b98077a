"""Low-rank approximations and a few extreme eigenvalues of large matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _C
from ._C import Tensor
from ._tensor.limits import finfo
from .autograd import Function, no_grad
from .autograd.function import once_differentiable
from .linalg import qr, svd

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _basis(
    times: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor], start: Tensor, niter: int
) -> Tensor:
    """Return orthonormal columns that nearly span the image of a matrix, by subspace iteration."""
    q = qr(times(start))[0]
    for _ in range(niter):
        q = qr(times(qr(back(q))[0]))[0]
    return q


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return an approximate singular value decomposition of low rank, ``A - M = U diag(S) V^T``.

    The image of the matrix is found from `q` random vectors and `niter` steps of subspace
    iteration: good where singular values fall off quickly. The full decomposition is
    `linalg.svd`.

    Parameters
    ----------
    A : Tensor
        Shape ``(*, m, n)``, float32 or float64; sparse matrices are multiplied as they are.
    q : int, default 6
        The rank, a little more than is looked for.
    niter : int, default 2
        How many steps, not negative.
    M : Tensor, optional
        What is taken off `A`, of a shape that broadcasts to it.

    Returns
    -------
    tuple of Tensor
        U of shape ``(*, m, q)``, S of shape ``(*, q)``, descending, and V of shape ``(*, n, q)``.

    Raises
    ------
    ValueError
        `niter` is negative.
    RuntimeError
        `A` has less than two dimensions, or `q` is negative.

    References
    ----------
    Halko, Martinsson and Tropp 2009, arXiv:0909.4061, algorithms 4.4 and 5.1.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.outer(torch.arange(4.0), torch.arange(1.0, 4.0))
    >>> u, s, v = torch.svd_lowrank(x, q=1)
    >>> torch.allclose(u * s @ v.mT, x, atol=1e-5)
    True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if niter < 0:
        raise ValueError(f"svd_lowrank: niter must not be negative, got {niter}")
    if A.ndim < 2:
        raise RuntimeError(f"svd_lowrank: A must have at least 2 dimensions, got {A.ndim}")
    if M is not None and not A._is_any_sparse:
        A, M = A - M, None
    wide = A.shape[-2] < A.shape[-1]

    def times(v: Tensor) -> Tensor:
        """Return the product of A - M, of which M may be a row, and columns."""
        return A @ v if M is None else A @ v - M @ v

    def back(v: Tensor) -> Tensor:
        """Return that of its transpose."""
        if M is None:
            return A.mT @ v
        return A.mT @ v - M.mT @ (v if M.shape[-2] > 1 else v.sum(-2, keepdim=True))

    if wide:
        times, back = back, times
    start = _C.randn(min(A.shape[-2:]), q, dtype=A.dtype, device=A.device)
    basis = _basis(times, back, start, niter)
    u, s, vh = svd(back(basis).mT, full_matrices=False)
    u, v = basis @ u, vh.mT
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the principal components of rows of samples, by `svd_lowrank`.

    Columns of V are the directions, ``S ** 2 / (m - 1)`` their variances, and ``A @ V[:, :k]`` the
    samples' first k coordinates.

    Parameters
    ----------
    A : Tensor
        Shape ``(*, m, n)``: m samples of n numbers, float32 or float64; sparse matrices are
        multiplied as they are.
    q : int, optional
        How many components; ``min(6, m, n)`` by default.
    center : bool, default True
        Whether the mean of the samples is taken off first.
    niter : int, default 2
        How many steps of subspace iteration, not negative.

    Returns
    -------
    tuple of Tensor
        U of shape ``(*, m, q)``, S of shape ``(*, q)``, descending, and V of shape ``(*, n, q)``.

    Raises
    ------
    ValueError
        `q` is not between 0 and ``min(m, n)``, or `niter` is negative.

    References
    ----------
    Halko, Martinsson and Tropp 2009, arXiv:0909.4061.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> u, s, v = torch.pca_lowrank(x)
    >>> (s[0] ** 2).round(decimals=3)
    tensor(10.)
    """
    least = min(A.shape[-2:])
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than {least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter)
    if A._is_any_sparse:
        # The difference would have an entry for every element.
        mean = A.sum(-2, keepdim=True).to_dense() / A.shape[-2]
        return svd_lowrank(A, q, niter, M=mean)
    return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)


class _Pencil(NamedTuple):
    """A symmetric A, a positive definite B or none, and what is near the inverse of A or none."""

    a: Tensor
    b: Tensor | None
    near: Tensor | None

    def metric(self, x: Tensor) -> Tensor:
        """Return B x."""
        return x if self.b is None else self.b @ x

    def orthonormal(self, x: Tensor) -> Tensor:
        """Return columns X with X^T B X = I that span those of `x`, without those it lacks."""
        x = x / x.norm(dim=-2, keepdim=True).clamp(min=finfo(x.dtype).tiny)
        for _ in range(2):
            gram = x.mT @ self.metric(x)
            w, v = _C._linalg.eigh((gram + gram.mT) / 2)
            keep = w > w[-1] * x.shape[-1] * finfo(x.dtype).eps
            x = x @ (v[:, keep] * w[keep].rsqrt())
        return x

    def ritz(self, x: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
        """Return the k extreme eigenvalues within the span of `x`, and their vectors in it."""
        inner = x.mT @ (self.a @ x)
        w, v = _C._linalg.eigh((inner + inner.mT) / 2)
        order = w.argsort(descending=largest)[:k]
        return w[order], v[:, order]


def _one(
    pencil: _Pencil, x: Tensor, niter: int, tol: float, largest: bool, tracker: Any
) -> tuple[Tensor, Tensor]:
    """Return the extreme eigenvalues of one matrix and their vectors, from the start `x`."""
    k = x.shape[-1]
    x = pencil.orthonormal(x)
    if x.shape[-1] < k:
        raise ValueError("lobpcg: the starting vectors X are linearly dependent")
    w, v = pencil.ritz(x, k, largest)
    x, p = x @ v, x[:, :0]
    size_a = pencil.a.norm()
    size_b = 1.0 if pencil.b is None else pencil.b.norm()
    step = 0
    while True:
        r = pencil.a @ x - pencil.metric(x) * w
        rerr = r.norm(dim=-2) / (x.norm(dim=-2) * (size_a + w.abs() * size_b))
        done = bool((rerr <= tol).all())
        if tracker is not None:
            tracker(_Worker(step, w, x, r, rerr, done))
        if done or step == niter:
            return w, x
        r = r if pencil.near is None else pencil.near @ r
        # What x lacks of the other two, so that it stays itself in the small problem.
        more = _C.cat([r, p], -1)
        more = more - x @ (x.mT @ pencil.metric(more))
        more = pencil.orthonormal(more)
        more = more - x @ (x.mT @ pencil.metric(more))
        basis = pencil.orthonormal(_C.cat([x, more], -1))
        w, v = pencil.ritz(basis, k, largest)
        last, x = x, basis @ v
        p = x - last @ (last.mT @ pencil.metric(x))
        step += 1


class _Worker(NamedTuple):
    """The state of `lobpcg` that a tracker receives in each step."""

    istep: int
    E: Tensor
    X: Tensor
    R: Tensor
    rerr: Tensor
    converged: bool


class _Attached(Function):
    """Eigenvalues and vectors that depend on A as they do by perturbation theory."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, w: Tensor, x: Tensor, plain: bool) -> tuple[Tensor, Tensor]:
        """Return `w` and `x`; `plain` tells that there is no B."""
        ctx.plain = plain
        ctx.save_for_backward(a, w, x)
        return w.clone(), x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gw: Tensor, gx: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of A: the slope of w is x^T dA x, that of x is (w - A)^+ dA x."""
        if not ctx.plain:
            raise NotImplementedError("lobpcg: with B there is no derivative")
        a, w, x = ctx.saved_tensors
        a = a.to_dense()
        eye = _C.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        shifts = w[..., None, None] * eye - a.unsqueeze(-3)
        # Eigenvectors of one eigenvalue, up to rounding, are told apart by nothing.
        near = _C._linalg.pinv(shifts, rtol=finfo(a.dtype).eps ** 0.5, hermitian=True)
        turned = (near @ gx.mT.unsqueeze(-1)).squeeze(-1).mT
        return (x * gw.unsqueeze(-2) + turned) @ x.mT, None, None, None


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest, or smallest, eigenvalues and their vectors: ``A x = e B x``.

    A is symmetric and B positive definite. Each step takes the best vectors in the span of the
    current ones, their residuals and their last changes, so only products with A and B are made.
    All eigenvalues of a matrix that is not large are quicker by `linalg.eigh`.

    Parameters
    ----------
    A : Tensor
        Shape ``(*, m, m)``, symmetric, float32 or float64; a sparse matrix is multiplied as it is.
    k : int, optional
        How many eigenvalues: 1 by default, or the columns of `X`.
    B : Tensor, optional
        The shape of `A`, symmetric and positive definite; the identity by default. It has no
        gradient.
    X : Tensor, optional
        Shape ``(*, m, n)``: where to start; random by default.
    n : int, optional
        Vectors of a random start, at least `k`; `k` by default.
    iK : Tensor, optional
        The shape of `A`: a preconditioner, near the inverse of A.
    niter : int, optional
        The most steps, by default 1000; -1 for no bound.
    tol : float, optional
        The size of residuals, relative to that of A, at which to stop: by default the square root
        of the dtype's epsilon.
    largest : bool, optional
        Whether the largest are looked for, by default True.
    method : str, optional
        ``'basic'`` or ``'ortho'``; both are computed alike.
    tracker : callable, optional
        Called with the state of each step: ``istep``, ``E``, ``X``, ``R``, ``rerr``, ``converged``.
    ortho_iparams, ortho_fparams, ortho_bparams : dict, optional
        Settings of PyTorch's orthogonalisation, which are not needed.

    Returns
    -------
    tuple of Tensor
        Eigenvalues of shape ``(*, k)``, largest (or smallest) first, and vectors of shape
        ``(*, m, k)`` with ``x^T B x = 1``. Without `B` both have first derivatives.

    Raises
    ------
    ValueError
        `A` is not square, smaller than ``3 k``, or `k`, `n`, `method` or `X` does not fit.
    RuntimeError
        `B` requires grad.

    References
    ----------
    Knyazev 2001, SIAM Journal on Scientific Computing 23(2), 517-541.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.diag(torch.arange(1.0, 11.0))
    >>> e, v = torch.lobpcg(x, k=2)
    >>> e.round(decimals=3)
    tensor([10.,  9.])
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg: A must be square, got {tuple(A.shape)}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if not 1 <= k <= n <= m:
        raise ValueError(f"lobpcg: 1 <= k <= n <= m must hold, got k={k}, n={n}, m={m}")
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3"
            f" x the number of requested eigenpairs (={n}): use linalg.eigh"
        )
    if B is not None and B.requires_grad:
        raise RuntimeError("lobpcg: there is no derivative with respect to B: detach it")
    if X is not None and tuple(X.shape[-2:]) != (m, n):
        raise ValueError(f"lobpcg: X must be {m} by {n}, got {tuple(X.shape)}")
    steps = 1000 if niter is None else niter
    near_zero = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    batch = A.shape[:-2]
    with no_grad():
        still = A.detach()
        start = X
        if start is None:
            start = _C.randn((*batch, m, n), dtype=A.dtype, device=A.device)

        def each(t: Tensor | None, width: int) -> list[Any]:
            if t is None:
                return [None] * math.prod(batch)
            if t._is_any_sparse:
                return [t.detach()]  # one matrix, multiplied as it is
            return list(t.detach().expand((*batch, m, width)).reshape(-1, m, width))

        parts = zip(each(still, m), each(B, m), each(iK, m), each(start, n))
        found = [
            _one(_Pencil(a, b, near), x, steps, near_zero, largest is not False, tracker)
            for a, b, near, x in parts
        ]
        w = _C.stack([w for w, _ in found])[:, :k].reshape((*batch, k))
        x = _C.stack([x for _, x in found])[..., :k].reshape((*batch, m, k))
    if A.requires_grad and _C.is_grad_enabled():
        return _Attached.apply(A, w, x, B is None)
    return w, x


def get_approximate_basis(A: Any, q: int, niter: int | None = 2, M: Any = None) -> Tensor:
    """Return `q` orthonormal columns that nearly span the image of a matrix.

    Parameters
    ----------
    A : Tensor
        (..., m, n).
    q : int
        How many.
    niter : int, default 2
        Steps of subspace iteration.
    M : Tensor, optional
        Subtracted from `A`.

    Returns
    -------
    Tensor
        (..., m, q).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib._lowrank import get_approximate_basis
    >>> get_approximate_basis(torch.eye(4, 3), 2).shape
    torch.Size([4, 2])
    """
    start = _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    if M is None:
        return _basis(lambda x: A @ x, lambda x: A.mH @ x, start, niter or 0)
    return _basis(
        lambda x: A @ x - M @ x, lambda x: A.mH @ x - M.mH @ x, start, 2 if niter is None else niter
    )
