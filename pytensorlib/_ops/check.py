"""Checks of an operator that a program defined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytensorlib as pt

from .custom import CustomOpDef, _flat, _found

__all__ = ["opcheck"]


def _copied(value: Any) -> Any:
    if isinstance(value, pt.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(_copied(v) for v in value)
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def _check_schema(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Hold an operator to what it says of its arguments: written to only where it says so."""
    before, after = _copied((args, kwargs)), _copied((args, kwargs))
    with pt.no_grad():
        op(*after[0], **after[1])
    marks = re.findall(r"[\w\[\]?]*\(a\d*!\)[^,]*?(\w+)(?:=[^,]*)?[,)]", op._schema)
    names = list(op._signature.parameters) if op._signature else []
    for i, (old, new) in enumerate(zip(_flat(before), _flat(after), strict=True)):
        name = names[i] if i < len(names) else str(i)
        if isinstance(old, pt.Tensor) and not pt.equal(old, new) and name not in marks:
            raise RuntimeError(
                f"{op._qualname}: argument {name} was written to, which {op._schema} does not say"
            )


def _check_fake(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Hold the description of results to the results."""
    if op._fake is None:
        raise RuntimeError(f"{op._qualname}: there is no fake implementation; see register_fake")
    copied = _copied((args, kwargs))
    with pt.no_grad():
        told, found = op._fake(*args, **kwargs), op(*copied[0], **copied[1])
    for t, f in zip(_flat(told), _flat(found), strict=True):
        if isinstance(f, pt.Tensor) and (t.shape, t.dtype, t.device) != (
            f.shape,
            f.dtype,
            f.device,
        ):
            raise RuntimeError(
                f"{op._qualname}: the fake implementation says {t.dtype} {tuple(t.shape)} on "
                f"{t.device}, the result is {f.dtype} {tuple(f.shape)} on {f.device}"
            )


def _check_autograd(op: CustomOpDef, args: tuple, kwargs: dict[str, Any]) -> None:
    """Ask for the gradients, which raises where there is no formula or it gives other shapes."""
    copied = _copied((args, kwargs))
    leaves = [t for t in _flat(copied) if isinstance(t, pt.Tensor) and t.requires_grad]
    if not leaves:
        return
    outs = [o for o in _flat(op(*copied[0], **copied[1])) if isinstance(o, pt.Tensor)]
    outs = [o for o in outs if o.requires_grad]
    grads = pt.autograd.grad([o.sum() for o in outs], leaves, allow_unused=True)
    for leaf, grad in zip(leaves, grads, strict=True):
        if grad is not None and grad.shape != leaf.shape:
            raise RuntimeError(
                f"{op._qualname}: a gradient has shape {tuple(grad.shape)} for an argument of "
                f"shape {tuple(leaf.shape)}"
            )


_CHECKS = {
    "test_schema": _check_schema,
    "test_faketensor": _check_fake,
    "test_autograd_registration": _check_autograd,
}


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(_CHECKS),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check that an operator does what it says, on some arguments.

    Parameters
    ----------
    op : operator
        One that a program defined.
    args : tuple
        Arguments to call it with.
    kwargs : dict, optional
        More of them.
    test_utils : str or sequence of str
        "test_schema": only arguments that the schema marks are written to.
        "test_autograd_registration": there are gradients, of the right shapes.
        "test_faketensor": the fake implementation tells the shapes and types.
        "test_aot_dispatch_dynamic", of PyTorch's compiler, is passed over.
    raise_exception : bool, default True
        Whether to raise the first error instead of returning all.
    atol, rtol : float, optional
        Not used.

    Returns
    -------
    dict
        "SUCCESS" or the exception by the name of the check.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> @torch.library.custom_op("docs::tenth", mutates_args=())
    ... def tenth(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 10
    >>> torch.library.opcheck(tenth, (torch.ones(2),), test_utils="test_schema")
    {'test_schema': 'SUCCESS'}
    """
    found, results = _found(op), {}
    for name in (test_utils,) if isinstance(test_utils, str) else test_utils:
        if name.startswith("test_aot_dispatch"):
            continue
        if name not in _CHECKS:
            raise RuntimeError(f"opcheck: test_utils must be of {sorted(_CHECKS)}, got {name!r}")
        try:
            _CHECKS[name](found, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[name] = error  # type: ignore[assignment]
    return results
