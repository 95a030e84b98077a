"""`gradcheck` of functions of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd._entries import apart, densified


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """Return a `gradcheck` that takes functions of sparse tensors.

    Inputs that are sparse are taken apart into their values, which it varies, and results that are
    sparse are made dense.

    Parameters
    ----------
    gradcheck : function
        Such as `torch.autograd.gradcheck`.

    Returns
    -------
    function
        With the same parameters, and ``masked``, which is accepted: entries alone are varied.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> check(lambda x: x @ torch.ones(2, 2, dtype=torch.float64), (x,))
    True
    """

    def checked(func: Any, inputs: Any, **kwargs: Any) -> bool:
        masked = bool(kwargs.pop("masked", False))
        func, given = apart(densified(func, masked), inputs)
        return gradcheck(func, given, **kwargs)

    return checked
