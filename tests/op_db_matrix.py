"""Rows of matrices. What is unique only up to signs or an order is compared by what it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_row import NO_GRAD, Many, Op, cases, definite, quiet, well_posed
from scipy import linalg

SQUARES = ((well_posed(3, 3),), (well_posed(2, 3, 3),))


def matrix(name: str, ref: Any, *calls: Any, **row: Any) -> Op:
    prefix = row.pop("of", "linalg.")
    return cases(prefix + name, ref, *calls,
                 **{"method": False, "out": False, "regular": True, "scale": 30,
                    "why": "error grows with the condition of the matrix", **row})


def made(make: Any) -> Any:
    """Return a call of `make` with the package's function and its arguments."""
    return lambda torch: lambda *a, **k: make(torch, *a, **k)


def slogdet(x: Any) -> Any:
    return tuple(np.linalg.slogdet(x))


def orthogonal(q: Any, r: Any) -> Any:
    return q @ r, q.mT @ q


def spectral(torch: Any, x: Any) -> Any:
    # What depends neither on the order of the eigenvalues nor on the vectors' phases.
    w, v = torch.linalg.eig(x)
    return ((v.real**2 + v.imag**2) * w.real.unsqueeze(-2)).sum(-1)


def spectral_ref(x: Any) -> Any:
    w, v = np.linalg.eig(x)
    return (np.abs(v) ** 2 * w.real[..., None, :]).sum(-1)


def det_of_ldl(ld: Any, pivots: Any) -> Any:
    # Of A = P L D L' P' it is that of D, whose off-diagonal elements lie in the blocks of two.
    det, k = ld[..., 0, 0] * 0 + 1, 0
    while k < pivots.shape[-1]:
        if pivots[k] > 0:
            det, k = det * ld[k, k], k + 1
        else:
            det, k = det * (ld[k, k] * ld[k + 1, k + 1] - ld[k + 1, k] ** 2), k + 2
    return det


def solved_ldl(torch: Any, a: Any, b: Any) -> Any:
    ld, pivots = torch.linalg.ldl_factor(a.detach() + a.detach().mT)
    return torch.linalg.ldl_solve(ld, pivots, b)


def reflectors(a: Any, tau: Any) -> Any:
    q = np.eye(a.shape[0])
    for i, t in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1.0], a[i + 1 :, i]])
        q = q @ (np.eye(len(v)) - t * np.outer(v, v))
    return q


def from_svd(torch: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return s, u * s.unsqueeze(-2) @ vh


def from_old_svd(torch: Any, x: Any) -> Any:
    u, s, v = torch.svd(x)
    return s, u * s.unsqueeze(-2) @ v.mT


def from_lu(torch: Any, x: Any) -> Any:
    p, l, u = torch.linalg.lu(x)
    return p @ l @ u


def solved_lu(torch: Any, x: Any, b: Any) -> Any:
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(x), b)


def solved_old(torch: Any, x: Any, b: Any) -> Any:
    return torch.lu_solve(b, *torch.linalg.lu_factor(x))


def unpacked(torch: Any, x: Any) -> Any:
    p, l, u = torch.lu_unpack(*torch.linalg.lu_factor(x))
    return p @ l @ u


def unpacked_ex(torch: Any, x: Any) -> Any:
    data, pivots, info = torch.linalg.lu_factor_ex(x)
    p, l, u = torch.lu_unpack(data, pivots)
    return p @ l @ u, info


def symmetric(x: Any) -> Any:
    return x + np.swapaxes(x, -1, -2)


def spectrum(torch: Any, x: Any) -> Any:
    w, v = torch.linalg.eigh(x + x.mT)
    return w, v * w.unsqueeze(-2) @ v.mT


def triangle(x: Any) -> Any:
    return np.linalg.cholesky(symmetric(x))


def info_of(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


RANK_ONE = (lambda rng: np.outer([1.0, 2, 3], [1.0, -1]),)

ROWS = [
    matrix("cholesky_ex", lambda x: (triangle(x), info_of(x)), (definite(3, 3),),
           (definite(2, 3, 3),), call=made(lambda torch, x: torch.linalg.cholesky_ex(x + x.mT))),
    matrix("cond", np.linalg.cond, *SQUARES, (well_posed(3, 3), 1), (well_posed(3, 3), "fro")),
    matrix("diagonal", lambda x, offset=0: np.diagonal(x, offset, -2, -1), ([3, 4],),
           ([2, 3, 4], {"offset": 1})),
    matrix("cross", lambda a, b, dim=-1: np.cross(a, b, axis=dim), ([4, 3], [4, 3]),
           ([3, 2], [3, 2], {"dim": 0})),
    matrix("eigh", lambda x: (np.linalg.eigvalsh(symmetric(x)), symmetric(x)), (definite(3, 3),),
           (definite(2, 3, 3),), call=made(spectrum)),
    matrix("eigvalsh", lambda x: np.linalg.eigvalsh(symmetric(x)), (definite(3, 3),),
           call=made(lambda torch, x: torch.linalg.eigvalsh(x + x.mT))),
    matrix("inv_ex", lambda x: (np.linalg.inv(x), info_of(x)), *SQUARES),
    matrix("eig", spectral_ref, (well_posed(4, 4),), (well_posed(2, 3, 3),), call=made(spectral)),
    matrix("eigvals", lambda x: np.trace(x @ x @ x, axis1=-2, axis2=-1), *SQUARES,
           call=made(lambda torch, x: (torch.linalg.eigvals(x) ** 3).sum(-1).real)),
    matrix("lstsq", lambda a, b: np.linalg.pinv(a) @ b, (well_posed(3, 3), [3, 2]),
           ([5, 2], [5, 3]), ([2, 2, 5], [2, 2, 3]),
           call=made(lambda torch, a, b: torch.linalg.lstsq(a, b).solution)),
    matrix("householder_product", lambda a, tau: reflectors(a, tau)[:, : a.shape[1]],
           ([4, 3], [3]), ([4, 4], [2]), ([3, 2], [0])),
    matrix("orgqr", lambda a, tau: reflectors(a, tau)[:, : a.shape[1]], ([4, 3], [3]), of=""),
    matrix("ormqr", lambda a, tau, c, left=True, transpose=False: (lambda q: q @ c if left
           else c @ q)(reflectors(a, tau).T if transpose else reflectors(a, tau)),
           ([4, 3], [3], [4, 2]), ([4, 3], [2], [4, 2], {"transpose": True}),
           ([4, 3], [3], [2, 4], {"left": False}),
           ([4, 3], [3], [2, 4], {"left": False, "transpose": True}), of=""),
    matrix("geqrf", lambda x: x.T @ x, ([4, 3],), ([3, 3],), of="", **NO_GRAD,
           call=made(lambda torch, x: torch.geqrf(x)[0].triu().mT @ torch.geqrf(x)[0].triu())),
    # NumPy before 2 takes a batch's only right side for vectors.
    matrix("ldl_solve", lambda a, b: np.linalg.solve(a + np.swapaxes(a, -1, -2),
           np.broadcast_to(b, a.shape[:-2] + b.shape[-2:])),
           (well_posed(3, 3), [3, 2]), ([2, 4, 4], [4, 1]), fixed=(0,), call=made(solved_ldl)),
    matrix("ldl_factor", lambda x: np.linalg.det(x + x.T), ([3, 3],), **NO_GRAD,
           call=made(lambda torch, x: det_of_ldl(*torch.linalg.ldl_factor(x + x.mT)))),
    matrix("ldl_factor_ex", lambda x: np.linalg.det(x + x.T), ([4, 4],), **NO_GRAD,
           call=made(lambda torch, x: det_of_ldl(*torch.linalg.ldl_factor_ex(x + x.mT)[:2]))),
    matrix("lu", np.array, *SQUARES, ([3, 4],), call=made(from_lu)),
    matrix("lu_factor", np.array, *SQUARES, call=made(unpacked)),
    matrix("lu_factor_ex", lambda x: (x, info_of(x)), *SQUARES, call=made(unpacked_ex)),
    matrix("lu_solve", np.linalg.solve, (well_posed(3, 3), [3, 2]), call=made(solved_lu)),
    matrix("lu_solve", np.linalg.solve, (well_posed(3, 3), [3, 2]), call=made(solved_old), of=""),
    matrix("lu_unpack", np.array, *SQUARES, call=made(unpacked), of=""),
    matrix("matmul", np.matmul, ([3, 4], [4, 2]), ([2, 3, 4], [4])),
    matrix("matrix_norm", np.linalg.norm, ([3, 4],), ([3, 4], "nuc"), ([3, 4], 1), ([3, 4], -2)),
    matrix("matrix_power", np.linalg.matrix_power, (well_posed(3, 3), 3), (well_posed(3, 3), -2),
           (well_posed(2, 2, 2), 0)),
    matrix("matrix_power", np.linalg.matrix_power, (well_posed(3, 3), 5), of=""),
    matrix("matrix_rank", np.linalg.matrix_rank, *SQUARES, RANK_ONE, result="int64", **NO_GRAD),
    matrix("multi_dot", np.linalg.multi_dot, (Many(([3, 4], [4, 2], [2, 5])),),
           (Many(([4], [4, 2], [2])),)),
    matrix("norm", np.linalg.norm, ([3, 4],), ([5], 3), ([3, 4], "fro"), ([3, 4], 2)),
    matrix("pinv", np.linalg.pinv, *SQUARES, ([4, 2],)),
    matrix("pinverse", np.linalg.pinv, *SQUARES, ([4, 2],), of=""),
    matrix("qr", lambda x: (x, np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-1][:-1],
           x.shape[-1], x.shape[-1]))), *SQUARES, ([4, 2],),
           call=made(lambda torch, x: orthogonal(*torch.linalg.qr(x)))),
    matrix("qr", lambda x: (x, np.eye(x.shape[-1])), ([4, 2],), of="",
           call=made(lambda torch, x: orthogonal(*torch.qr(x)))),
    matrix("slogdet", slogdet, *SQUARES),
    matrix("slogdet", slogdet, *SQUARES, of=""),
    matrix("logdet", lambda x: np.linalg.slogdet(x)[1], (definite(3, 3),), of=""),
    matrix("det", np.linalg.det, *SQUARES, of=""),
    matrix("inverse", np.linalg.inv, *SQUARES, of=""),
    matrix("solve_ex", lambda a, b: (np.linalg.solve(a, b), info_of(a)),
           (well_posed(3, 3), [3, 2])),
    matrix("svd", lambda x: (np.linalg.svd(x, compute_uv=False), x), *SQUARES, ([4, 2],),
           call=made(from_svd)),
    matrix("svd", lambda x: (np.linalg.svd(x, compute_uv=False), x), ([4, 2],), of="",
           call=made(from_old_svd)),
    matrix("svdvals", lambda x: np.linalg.svd(x, compute_uv=False), *SQUARES, ([2, 4],)),
    matrix("tensorinv", np.linalg.tensorinv, (lambda rng: well_posed(6, 6)(rng).reshape(
           6, 2, 3), {"ind": 1})),
    matrix("tensorsolve", np.linalg.tensorsolve, (lambda rng: well_posed(6, 6)(rng).reshape(
           2, 3, 6), [2, 3]), (lambda rng: well_posed(6, 6)(rng).reshape(2, 3, 3, 2), [2, 3])),
    matrix("vander", lambda x, N: np.vander(x, N, increasing=True), ([4], {"N": 5}),
           ([3], {"N": 2})),
    matrix("vander", np.vander, ([4],), ([3], 5), ([3], 4, True), of=""),
    matrix("matrix_exp", linalg.expm, ([3, 3],), ([2, 3, 3],), ([1, 1],), (well_posed(4, 4),)),
    matrix("matrix_exp", linalg.expm, ([3, 3],), of="", method=True),
    matrix("norm_except_dim", lambda x, p=2, dim=0: np.linalg.norm(
           np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1), p, 1).reshape(
           [n if d == dim else 1 for d, n in enumerate(x.shape)]), ([3, 4],), ([2, 3, 4], 3, 1),
           ([2, 3], 1, 1), of=""),
    matrix("vecdot", lambda x, y: (x.conj() * y).sum(-1), ([3, 4], [3, 4]), ([3, 4], [4])),
    matrix("vdot", np.vdot, ([5], [5]), of=""),
    matrix("inner", np.inner, ([5], [5]), ([2, 3], [4, 3]), ([2, 3], []), of=""),
    matrix("addbmm", lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b).sum(0),
           ([3, 2], [2, 3, 4], [2, 4, 2]), ([2], [2, 3, 4], [2, 4, 2], {"beta": 0.5, "alpha": 2}),
           of="", inplace=True),
    matrix("chain_matmul", lambda *x: np.linalg.multi_dot(x), ([3, 4], [4, 2], [2, 5]), of="",
           call=made(lambda torch, *x: quiet(torch.chain_matmul, *x))),
    matrix("cholesky", lambda x: triangle(x), (definite(3, 3),), of="",
           call=made(lambda torch, x: torch.cholesky(x + x.mT))),
    matrix("cholesky_solve", lambda b, l: linalg.cho_solve((np.tril(l), True), b),
           ([3, 2], lambda rng: np.tril(well_posed(3, 3)(rng))), of="",
           call=made(lambda torch, b, l: torch.cholesky_solve(b, l.tril()))),
    matrix("cholesky_inverse", lambda l: np.linalg.inv(np.tril(l) @ np.tril(l).T),
           (lambda rng: np.tril(well_posed(3, 3)(rng)),), of="",
           call=made(lambda torch, l: torch.cholesky_inverse(l.tril()))),
    matrix("triangular_solve", lambda b, a: (linalg.solve_triangular(np.triu(a), b),),
           ([3, 2], lambda rng: np.triu(well_posed(3, 3)(rng))), of="",
           call=made(lambda torch, b, a: (quiet(torch.triangular_solve, b, a)[0],))),
]
