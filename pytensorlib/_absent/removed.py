"""Functions that PyTorch removed: calling one says what took its place."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

INSTEAD = {
    "eig": "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than "
    "real tensors mimicking complex tensors. Use L, V = torch.linalg.eig(A), or "
    "torch.linalg.eigvals(A).",
    "symeig": "Use L, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L'), or "
    "torch.linalg.eigvalsh; they read the lower triangle where nothing is said.",
    "matrix_rank": "Please use the `torch.linalg.matrix_rank` function instead. The parameter "
    "'symmetric' is 'hermitian' there.",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`. X = torch.solve(B, A)"
    ".solution should be replaced with X = torch.linalg.solve(A, B).",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`. X, _ = torch.lstsq(B, "
    "A) should be replaced with X = torch.linalg.lstsq(A, B).solution.",
}


def removed(name: str) -> Any:
    """Return a function that says what took its place."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. {INSTEAD[name]}"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Raise: PyTorch removed it. {INSTEAD[name]}

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> try:
    ...     torch.{name}(torch.ones(1, 1), torch.ones(1, 1))
    ... except RuntimeError:
    ...     print("removed")
    removed
    """
    return function


eig, symeig, matrix_rank = removed("eig"), removed("symeig"), removed("matrix_rank")
solve, lstsq = removed("solve"), removed("lstsq")


def attach(tensor: type[_C.Tensor]) -> None:
    """Give tensors the methods of them that PyTorch's have."""
    for name in ("eig", "lstsq", "solve", "symeig"):
        setattr(tensor, name, globals()[name])
