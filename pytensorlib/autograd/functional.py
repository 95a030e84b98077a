"""Jacobians, Hessians and their products with vectors, as functions of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Func = Callable[..., Any]
Tensors = tuple[Any, ...]


def _tuple_of_tensors(value: Any, what: str, caller: str) -> tuple[bool, Tensors]:
    """Return whether `value` was a tuple, and it as one."""
    many = isinstance(value, tuple)
    result = value if many else (value,)
    for index, item in enumerate(result):
        if not isinstance(item, _C.Tensor):
            where = f"value at index {index}" if many else f"given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors "
                f"but the {where} has type {type(item)}."
            )
    return many, result


def _leaves(inputs: Tensors, create_graph: bool) -> Tensors:
    """Return inputs that record, still connected to their past if a graph is wanted."""
    if create_graph:
        return tuple(
            x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs
        )
    return tuple(x.detach().requires_grad_() for x in inputs)


def _finish(result: Any, create_graph: bool) -> Any:
    if create_graph:
        return result
    if isinstance(result, tuple):
        return tuple(_finish(item, create_graph) for item in result)
    return result.detach()


def _pick(many: bool, values: Tensors) -> Any:
    return values if many else values[0]


def _grad(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    grads: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool = True,
) -> Tensors:
    """Return what enters the inputs, tensors or edges; None where nothing does."""
    from . import grad

    pairs = zip(outputs, grads or (None,) * len(outputs), strict=True)
    live = [(o, g) for o, g in pairs if o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in live],
        inputs,
        [g for _, g in live],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


def _filled(grads: Tensors, like: Tensors, strict: bool, text: str) -> Tensors:
    """Return the gradients with zeros for None, which strict mode forbids."""
    for index, g in enumerate(grads):
        if g is None and strict:
            raise RuntimeError(text.format(index) + " This is not allowed in strict mode.")
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True))


_INDEPENDENT = "The output of the user-provided function is independent of input {}."


def _require_graph(values: Tensors, strict: bool, text: str) -> None:
    for index, value in enumerate(values):
        if strict and not value.requires_grad:
            raise RuntimeError(text.format(index))


_NO_GRAPH = (
    "Output {} of the user-provided function does not require gradients. The outputs must be "
    "computed in a differentiable manner from the input when running in strict mode."
)
_JACOBIAN_FIXED = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode when create_graph=True."
)
_JACOBIAN_CONSTANT = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)


def _vector(v: Any, like: Tensors, many: bool, caller: str, when_none: str) -> Tensors:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(when_none)
        return (_C.ones_like(like[0]),)
    _, vs = _tuple_of_tensors(v, "v", caller)
    if len(vs) != len(like):
        if many:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (one, other) in enumerate(zip(vs, like, strict=True)):
        if one.shape != other.shape:
            entry = f"Entry {index} in " if many else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {other.shape} but got {one.shape}."
            )
    return vs


_NONE_OUTPUT = (
    "The vector v can only be None if the user-provided function returns "
    "a single Tensor with a single element."
)
_NONE_INPUT = (
    "The vector v can only be None if the input to the user-provided function is "
    "a single Tensor with a single element."
)


def vjp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v` with its Jacobian, v^T J.

    Parameters
    ----------
    func : callable
        Takes tensors, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Where the Jacobian is taken.
    v : Tensor or tuple of Tensor, optional
        Of the shape of the outputs; may be left out for one output of one element.
    create_graph : bool, default False
        Make the results differentiable.
    strict : bool, default False
        Raise where an input has no part in the outputs, instead of giving zeros.

    Returns
    -------
    tuple
        The outputs, and the product in the form of `inputs`.

    Raises
    ------
    RuntimeError
        `v` is missing or has another shape, or `strict` forbids a result.
    TypeError
        Something is not a tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vjp(lambda x: x * x, x, torch.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        many_in, given = _tuple_of_tensors(inputs, "inputs", "vjp")
        leaves = _leaves(given, create_graph)
        many_out, outputs = _tuple_of_tensors(
            func(*leaves), "outputs of the user-provided function", "vjp"
        )
        _require_graph(outputs, strict, _NO_GRAPH)
        vs = _vector(v, outputs, many_out, "vjp", _NONE_OUTPUT)
        grads = _grad(outputs, leaves, vs, create_graph)
        product = _filled(grads, leaves, strict, _INDEPENDENT)
        _require_graph(product, strict and create_graph, _JACOBIAN_FIXED)
    return (
        _finish(_pick(many_out, outputs), create_graph),
        _finish(_pick(many_in, product), create_graph),
    )


def jvp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Jacobian with `v`, J v.

    v^T J is linear in v, so its own transpose gives J v: two backwards, no forward mode.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As in `vjp`.
    v : Tensor or tuple of Tensor, optional
        Of the shape of the inputs; may be left out for one input of one element.

    Returns
    -------
    tuple
        The outputs, and the product in their form.

    Raises
    ------
    RuntimeError
        `v` is missing or has another shape, or `strict` forbids a result.
    TypeError
        Something is not a tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.jvp(lambda x: x.prod(), x, torch.tensor([1.0, 0.0]))
    (tensor(2.), tensor(2.))
    """
    with enable_grad():
        many_in, given = _tuple_of_tensors(inputs, "inputs", "jvp")
        vs = _vector(v, given, many_in, "jvp", _NONE_INPUT)
        leaves = _leaves(given, create_graph)
        many_out, outputs = _tuple_of_tensors(
            func(*leaves), "outputs of the user-provided function", "jvp"
        )
        _require_graph(outputs, strict, _NO_GRAPH)
        # Any values do: the second backward is linear in them.
        probes = tuple(_C.zeros_like(o).requires_grad_() for o in outputs)
        grads = _filled(_grad(outputs, leaves, probes, True), leaves, strict, _INDEPENDENT)
        product = _filled(
            _grad(grads, probes, vs, create_graph),
            outputs,
            strict,
            "The gradient with respect to the input is independent of entry {} in the "
            "grad_outputs when using the double backward trick.",
        )
        _require_graph(product, strict and create_graph, _JACOBIAN_FIXED)
    return (
        _finish(_pick(many_out, outputs), create_graph),
        _finish(_pick(many_out, product), create_graph),
    )


def jacobian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of `func` at `inputs`.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As in `vjp`.
    vectorize : bool, default False
        Accepted; the rows are computed one after the other either way.
    strategy : {"reverse-mode", "forward-mode"}
        Accepted; the result is the same.

    Returns
    -------
    Tensor or nested tuples
        Of shape (*output, *input); outer tuple over outputs, inner one over inputs, where
        `func` returns and takes tuples.

    Raises
    ------
    RuntimeError
        `strict` forbids a result.
    TypeError
        Something is not a tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.jacobian(lambda x: x * x.sum(), x)
    tensor([[4., 1.],
            [2., 5.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            f'Otherwise, prefer to use "reverse-mode". Got {strategy!r}.'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD is only implemented for `vectorize=True`."
            )
    if strict and (vectorize or strategy == "forward-mode"):
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorize=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        many_in, given = _tuple_of_tensors(inputs, "inputs", "jacobian")
        leaves = _leaves(given, create_graph)
        many_out, outputs = _tuple_of_tensors(
            func(*leaves), "outputs of the user-provided function", "jacobian"
        )
        _require_graph(outputs, strict, _NO_GRAPH)
        result = tuple(
            _pick(many_in, _rows(i, output, leaves, create_graph, strict))
            for i, output in enumerate(outputs)
        )
    return _finish(_pick(many_out, result), create_graph)


def _rows(position: int, output: Any, leaves: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """Return the Jacobians of one output, one backward for each of its elements."""
    columns: list[list[Any]] = [[] for _ in leaves]
    for element in output.reshape(-1).unbind():
        grads = _grad((element,), leaves, None, create_graph)
        if strict:
            for index, g in enumerate(grads):
                if g is None or (create_graph and not g.requires_grad):
                    raise RuntimeError(
                        f"Output {position} of the user-provided function is independent of "
                        f"input {index}. This is not allowed in strict mode."
                        if g is None
                        else "The jacobian of the user-provided function is independent of input "
                        f"{index}. This is not allowed in strict mode when create_graph=True."
                    )
        for column, g, x in zip(columns, grads, leaves, strict=True):
            column.append(_C.zeros_like(x) if g is None else g)
    return tuple(
        _C.stack(column).reshape((*output.shape, *x.shape))
        if column
        else _C.zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device)
        for column, x in zip(columns, leaves, strict=True)
    )


def hessian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function with one output of one element.

    Parameters
    ----------
    func, inputs, create_graph, strict, vectorize
        As in `jacobian`.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}
        Accepted; the result is the same.

    Returns
    -------
    Tensor or nested tuples
        Of shape (*input, *input); tuples of tuples over the inputs where they are a tuple.

    Raises
    ------
    RuntimeError
        The output has more than one element, or `strict` forbids a result.
    TypeError
        Something is not a tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.hessian(lambda x: x[0] * x[1] ** 2, x)
    tensor([[0., 4.],
            [4., 2.]])
    """
    many_in, given = _tuple_of_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*args: Any) -> Any:
        output = _single(func(*args), "hessian")
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(x.requires_grad_() for x in args)
        _require_graph((output,), strict, _NO_GRAPH)
        grads = _filled(_grad((output,), args, None, True), args, strict, _INDEPENDENT)
        _require_graph(grads, strict, _JACOBIAN_CONSTANT)
        return grads

    result = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if many_in else result[0][0]


def _single(output: Any, caller: str) -> Any:
    many, outputs = _tuple_of_tensors(output, "outputs of the user-provided function", caller)
    if many:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {caller} should contain a single element"
        )
    return outputs[0].squeeze()


def vhp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v` with its Hessian.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As in `vjp`, for a function with one output of one element and `v` like the inputs.

    Returns
    -------
    tuple
        The output, and the product in the form of `inputs`.

    Raises
    ------
    RuntimeError
        The output has more than one element, `v` does not fit, or `strict` forbids a result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
    >>> torch.autograd.functional.vhp(lambda x: x[0] * x[1] ** 2, x, v)
    (tensor(4.), tensor([0., 4.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Hessian with `v`.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As in `vhp`. The Hessian is symmetric, so the result is that of `vhp`.

    Returns
    -------
    tuple
        The output, and the product in the form of `inputs`.

    Raises
    ------
    RuntimeError
        The output has more than one element, `v` does not fit, or `strict` forbids a result.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
    >>> torch.autograd.functional.hvp(lambda x: x[0] * x[1] ** 2, x, v)
    (tensor(4.), tensor([0., 4.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    caller: str, func: Func, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with enable_grad():
        many_in, given = _tuple_of_tensors(inputs, "inputs", caller)
        vs = _vector(v, given, many_in, caller, _NONE_INPUT)
        leaves = _leaves(given, create_graph)
        output = func(*leaves)
        scalar = _single(output, caller)
        _require_graph((scalar,), strict, _NO_GRAPH)
        grads = _filled(_grad((scalar,), leaves, None, True), leaves, strict, _INDEPENDENT)
        _require_graph(grads, strict, _JACOBIAN_CONSTANT)
        product = _filled(
            _grad(grads, leaves, vs, create_graph),
            leaves,
            strict,
            "The jacobian of the user-provided function is independent of input {}.",
        )
    return _finish(output, create_graph), _finish(_pick(many_in, product), create_graph)


def _construct_standard_basis_for(tensors: Any, tensor_numels: Any) -> tuple[Any, ...]:
    """Return, for each tensor, its part of the unit vectors of all of them together."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError("expected as many tensors as numbers of elements, and one at least")
    total, first, parts = sum(tensor_numels), 0, []
    for t, numel in zip(tensors, tensor_numels, strict=True):
        part = t.new_zeros(total, numel)
        part.diagonal(-first).fill_(1)
        first += numel
        parts.append(part)
    return tuple(parts)
