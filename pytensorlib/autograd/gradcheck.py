"""Compare derivatives with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from .. import _C
from ._entries import apart, densified, is_sparse
from .function import Function

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """A derivative does not agree with its finite difference, or is inconsistent.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Wrong(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return 3 * g
    >>> x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    >>> try:
    ...     torch.autograd.gradcheck(Wrong.apply, x)
    ... except torch.autograd.GradcheckError:
    ...     print("wrong")
    wrong
    """


class _UndefinedGrad(Function):
    """An identity whose backward gives no gradient at all."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None


def _grad(outputs: Any, inputs: Any, grads: Any, create_graph: bool = False) -> tuple[Any, ...]:
    from . import grad

    return grad(
        outputs, inputs, grads, retain_graph=True, create_graph=create_graph, allow_unused=True
    )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _C.Tensor)


def _differentiable(outputs: Any) -> tuple[Any, ...]:
    return tuple(o for o in _as_tuple(outputs) if _is_tensor(o) and o.requires_grad)


def _checked(inputs: Sequence[Any]) -> list[Any]:
    return [x for x in inputs if _is_tensor(x) and x.requires_grad]


def _over_reals(
    func: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Turn a function of complex numbers into one of (real, imaginary) pairs.

    The gradient of a real loss by z = x + iy is dL/dx + i dL/dy, so the pair's gradient is
    the complex one seen as a pair, and the check of the pair is a check of the complex.
    """
    complex_at = {i for i, x in enumerate(inputs) if _is_tensor(x) and x.is_complex()}

    def paired(*args: Any) -> tuple[Any, ...]:
        given = [_C.view_as_complex(x) if i in complex_at else x for i, x in enumerate(args)]
        outputs = _as_tuple(func(*given))
        return tuple(
            _C.view_as_real(o.resolve_conj()) if _is_tensor(o) and o.is_complex() else o
            for o in outputs
        )

    pairs = tuple(
        _C.view_as_real(x.detach()).clone().requires_grad_(x.requires_grad)
        if i in complex_at
        else x
        for i, x in enumerate(inputs)
    )
    return paired, pairs


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    tensors = _checked(inputs)
    if not tensors:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of them have requires_grad=True."
        )
    for index, x in enumerate(inputs):
        if not (_is_tensor(x) and x.requires_grad):
            continue
        if x.dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are not of "
                "double precision floating point or complex. ",
                stacklevel=4,
            )
        strides = zip(x.stride(), x.shape, strict=True)
        if any(step == 0 and size > 1 for step, size in strides):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only "
                "supports inputs that are non-overlapping to be able to compute the numerical "
                "gradients correctly. You should call .contiguous on the input before passing "
                "it to gradcheck."
            )


def _difference(
    func: Callable[..., Any], inputs: tuple[Any, ...], spot: Any, step: Any, eps: float
) -> list[Any]:
    """Return the central difference of each output for a move of `spot` by `step`."""

    def outputs() -> list[Any]:
        return [o.detach().clone() for o in _as_tuple(func(*inputs)) if _is_tensor(o)]

    before = spot.clone()
    try:
        spot.copy_(before - step)
        low = outputs()
        spot.copy_(before + step)
        high = outputs()
    finally:
        spot.copy_(before)
    columns = []
    for a, b in zip(low, high, strict=True):
        if a.shape != b.shape:
            raise AssertionError(
                "Expected `func` to return outputs with the same shape when inputs are "
                f"perturbed by {eps}, but got: shapes {a.shape} and {b.shape}."
            )
        if a.dtype != b.dtype:
            raise AssertionError(
                "Expected `func` to return outputs with the same dtype when inputs are "
                f"perturbed by {eps}, but got: dtypes {a.dtype} and {b.dtype}."
            )
        if not a.dtype.is_floating_point:
            a, b = a.to(_C.float64), b.to(_C.float64)
        columns.append(((b - a) / (2 * eps)).reshape(-1))
    return columns


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], outputs: tuple[Any, ...], eps: float
) -> list[list[Any]]:
    """Return, per input and per output, the Jacobian as (input elements, output elements)."""
    return [_numerical_of(func, inputs, outputs, x, eps) for x in _checked(inputs)]


def _numerical_of(
    func: Callable[..., Any], inputs: tuple[Any, ...], outputs: Sequence[Any], x: Any, eps: float
) -> list[Any]:
    """Return the Jacobian of each output for one tensor that `func` reads."""
    data = x.data
    columns = [
        _difference(func, inputs, data[index], eps, eps) for index in product(*map(range, x.shape))
    ]
    if columns:
        return [_C.stack(rows) for rows in zip(*columns, strict=True)]
    return [_C.zeros((0, o.numel()), dtype=x.dtype) for o in outputs]


def _analytical(output: Any, inputs: list[Any], check_dtypes: bool) -> list[Any]:
    """Return the Jacobians of one output, from one backward for each of its elements."""
    columns: list[list[Any]] = [[] for _ in inputs]
    one_hot = _C.zeros_like(output).contiguous()
    flat = one_hot.view(-1)
    for element in range(output.numel()):
        flat[element] = 1.0
        # A clone: the gradient may come back as the very tensor that went in.
        grads = _grad(output, inputs, one_hot.clone())
        flat[element] = 0.0
        for column, x, g in zip(columns, inputs, grads, strict=True):
            if g is None:
                g = _C.zeros_like(x)
            if check_dtypes and g.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            if g.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(g.detach().reshape(-1))
    return [
        _C.stack(column, 1) if column else _C.zeros((x.numel(), 0), dtype=x.dtype)
        for column, x in zip(columns, inputs, strict=True)
    ]


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    dtype = _C.promote_types(a.dtype, b.dtype)
    return bool(_C.allclose(a.to(dtype), b.to(device=a.device, dtype=dtype), rtol, atol))


def _check_reentrant(first: list[Any], second: list[Any], nondet_tol: float) -> None:
    for a, b in zip(first, second, strict=True):
        if a.numel() and bool((a - b).abs().max() > nondet_tol):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical "
                "gradient matches numerical gradient."
                f"The tolerance for nondeterminism was {nondet_tol}."
            )


def _mismatch(
    analytical: Any, numerical: Any, output: int, index: int, how: str = ""
) -> GradcheckError:
    return GradcheckError(
        f"Jacobian {how}mismatch for output {output} with respect to input {index},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_whole(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    numerical = _numerical(func, inputs, outputs, options["eps"])
    positions = [i for i, o in enumerate(_as_tuple(func(*inputs))) if _requires(o)]
    tensors = _checked(inputs)
    for i, output in enumerate(outputs):
        analytical = _analytical(output, tensors, options["check_grad_dtypes"])
        again = _analytical(output, tensors, options["check_grad_dtypes"])
        _check_reentrant(analytical, again, options["nondet_tol"])
        for j, a in enumerate(analytical):
            n = numerical[j][positions[i]]
            if not _close(a, n, options["rtol"], options["atol"]):
                raise _mismatch(a, n, i, j)


def _requires(value: Any) -> bool:
    return _is_tensor(value) and value.requires_grad


def _check_projected(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    outputs: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    """Compare v J u for one random v and u instead of J as a whole."""
    eps = options["eps"]
    positions = [i for i, o in enumerate(_as_tuple(func(*inputs))) if _requires(o)]
    generator = _C.Generator()
    generator.manual_seed(0)

    def direction(x: Any) -> Any:
        u = _C.rand(x.shape, generator=generator, dtype=_C.float64)
        return (u / u.norm().clamp(min=1e-30)).to(x.dtype)

    tensors = _checked(inputs)
    us = [direction(x) for x in tensors]
    vs = [direction(o) for o in outputs]
    slopes = [
        _difference(func, inputs, x.data, u * eps, eps) for x, u in zip(tensors, us, strict=True)
    ]
    for i, (output, v) in enumerate(zip(outputs, vs, strict=True)):
        grads, again = (
            [
                _C.zeros_like(x) if g is None else g
                for x, g in zip(tensors, _grad(output, tensors, v), strict=True)
            ]
            for _ in range(2)
        )
        _check_reentrant(grads, again, options["nondet_tol"])
        for j, (g, u) in enumerate(zip(grads, us, strict=True)):
            a = (g * u).sum()
            n = (slopes[j][positions[i]] * v.reshape(-1)).sum()
            # The projection adds up as many errors as the sums of u and v have terms.
            scale = max(1.0, float(u.sum()) * float(v.sum()))
            if not _close(a, n, options["rtol"], options["atol"] * scale):
                # The whole comparison says more about where they differ.
                _check_whole(func, inputs, outputs, options)
                raise _mismatch(a, n, i, j)


def _check_scaled_by_grad(outputs: tuple[Any, ...], inputs: list[Any]) -> None:
    grads = _grad(outputs, inputs, [_C.zeros_like(o) for o in outputs])
    for g, x in zip(grads, inputs, strict=True):
        if g is None:
            continue
        if not bool(g.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what in ("dtype", "device", "shape"):
            if getattr(g, what) != getattr(x, what):
                name = {"dtype": "type", "shape": "size"}.get(what, what)
                raise GradcheckError(f"grad is incorrect {name}")


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    count = len(_differentiable(func(*inputs)))
    choices = [set(range(count))]
    if count > 1:
        choices += [{i} for i in range(count)]
    for undefined in choices:
        outputs = [
            _UndefinedGrad.apply(o) if i in undefined else o
            for i, o in enumerate(_differentiable(func(*inputs)))
        ]
        try:
            grads = _grad(outputs, _checked(inputs), [_C.zeros_like(o) for o in outputs])
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: a None "
                "gradient must count as zeros."
            ) from error
        if any(g is not None and not bool(g.eq(0).all()) for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero."
            )


def _run(func: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
    func, inputs = apart(func, inputs)
    _check_inputs(inputs)
    raw = func(*inputs)
    if any(is_sparse(o) for o in _as_tuple(raw)):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call "
            "to_dense(masked_grad=...) on the output of fn for gradcheck."
        )
    # Real functions keep their own inputs: a closure may hold them and must see them move.
    if any(_is_tensor(t) and t.is_complex() for t in (*inputs, *_as_tuple(raw))):
        func, inputs = _over_reals(func, inputs)
        raw = func(*inputs)
    outputs = _differentiable(raw)
    if options["check_forward_ad"]:
        _check_forward(func, inputs, raw, options)
    if not outputs:
        tensors = tuple(o for o in _as_tuple(raw) if _is_tensor(o))
        for per_input in _numerical(func, inputs, tensors, options["eps"]):
            if any(bool((n != 0).any()) for n in per_input):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if options["check_backward_ad"]:
        compare = _check_projected if options["fast_mode"] else _check_whole
        compare(func, inputs, outputs, options)
        _check_scaled_by_grad(outputs, _checked(inputs))
        if options["check_undefined_grad"]:
            _check_undefined(func, inputs)
        if options["check_batched_grad"]:
            _check_batched(outputs, _checked(inputs))


def _check_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], raw: Any, options: dict[str, Any]
) -> None:
    """Compare tangents with finite differences, and those of a batch with single ones."""
    from ._forward_check import check_batched, check_projected, check_whole

    def close(a: Any, b: Any) -> bool:
        return _close(a, b, options["rtol"], options["atol"])

    tensors, eps = tuple(o for o in _as_tuple(raw) if _is_tensor(o)), options["eps"]
    # What has no derivative has no tangent either.
    places = [i for i, o in enumerate(tensors) if o.requires_grad]
    agree = False
    if options["fast_mode"]:
        directions = [_direction(x) for x in _checked(inputs)]
        pairs = zip(_checked(inputs), directions, strict=True)
        slopes = [_difference(func, inputs, x.data, u * eps, eps) for x, u in pairs]
        agree = check_projected(func, inputs, directions, slopes, places, close)
    if not agree:
        numerical = _numerical(func, inputs, tensors, eps)
        check_whole(func, inputs, numerical, places, close, _mismatch)
    if options["check_batched_forward_grad"]:
        differs = check_batched(func, inputs, close)
        if differs is not None:
            index, together, apart = differs
            raise GradcheckError(
                "While computing batched gradients, got values that differ: tangents of a batch "
                f"along input {index} are not those computed one by one.\nbatched:{together}\n"
                f"single:{apart}"
            )


def _direction(x: Any) -> Any:
    """Return a random vector of length one in the shape of a tensor, the same each time."""
    generator = _C.Generator()
    generator.manual_seed(0)
    u = _C.rand(x.shape, generator=generator, dtype=_C.float64)
    return (u / u.norm().clamp(min=1e-30)).to(x.dtype)


def _check_batched(outputs: tuple[Any, ...], inputs: list[Any]) -> None:
    from . import grad

    for output in outputs:
        batch = _C.stack([_C.randn_like(output) for _ in range(2)])
        rows = [_grad(output, inputs, g) for g in batch]
        both = grad(
            output, inputs, batch, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        for index, together in enumerate(both):
            apart = [row[index] for row in rows]
            if together is not None and not _close(together, _C.stack(apart), 1e-5, 1e-8):
                raise GradcheckError(
                    f"Batched gradient of input {index} differs from the single ones:\n"
                    f"batched:{together}\nsingle:{apart}"
                )


def _old_api(name: str, grad_out: float, tensors: Sequence[Any]) -> None:
    warnings.warn(f"{name} is deprecated: use gradcheck", FutureWarning, stacklevel=3)
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )
    if any(_is_tensor(t) and t.is_complex() for t in tensors):
        raise ValueError(f"Expected real tensors. {name} does not support complex ones")


def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Any, ...]:
    """Return Jacobians of the first output of a function, by finite differences; deprecated.

    Parameters
    ----------
    fn : callable
        Takes `inputs` as one argument, a tuple.
    inputs : Tensor or tuple of Tensor
        Its argument.
    target : Tensor or tuple of Tensor, optional
        By what is differentiated; by default the inputs that require grad.
    eps : float, default 1e-3
        How far an element moves.
    grad_out : float, default 1.0
        Nothing else.

    Returns
    -------
    tuple of Tensor
        A row for each element of the input, a column for each of the output.

    Raises
    ------
    ValueError
        `grad_out` is not 1, or something is complex.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd.gradcheck import get_numerical_jacobian
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # gradcheck is the way now
    ...     (found,) = get_numerical_jacobian(lambda xs: xs[0] * 3, x)
    >>> found.round()
    tensor([[3., 0.],
            [0., 3.]], dtype=torch.float64)
    """
    given = _as_tuple(inputs)
    targets = _checked(_as_tuple(inputs if target is None else target))
    outputs = _as_tuple(fn(given))
    _old_api("get_numerical_jacobian", grad_out, [*given, *outputs])

    def spread(*args: Any) -> Any:
        return fn(args)

    return tuple(_numerical_of(spread, given, outputs, x, eps)[0] for x in targets)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Any, ...]:
    """Return the Jacobian of each output for one input, by finite differences.

    Parameters
    ----------
    fn : callable
        Takes `inputs` one by one.
    input_idx : int
        Which of them.
    inputs : sequence
        Its arguments.
    outputs : sequence of Tensor
        What it returns.
    eps : float
        How far an element moves.
    input : Tensor, optional
        By what is differentiated, if that is not an argument; it requires grad.
    is_forward_ad : bool, default False
        Not used.

    Returns
    -------
    tuple of Tensor
        A row for each element of the input, a column for each of the output.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd.gradcheck import get_numerical_jacobian_wrt_specific_input
    >>> x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    >>> f = lambda x: (x * 3,)
    >>> get_numerical_jacobian_wrt_specific_input(f, 0, (x,), f(x), 1e-6)[0].shape
    torch.Size([1, 1])
    """
    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    if any(t.is_complex() for t in (x, *outputs)):
        raise ValueError(
            "get_numerical_jacobian_wrt_specific_input does not support complex tensors"
        )
    return tuple(_numerical_of(fn, tuple(inputs), outputs, x, eps))


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """Return Jacobians of a tensor that was computed, by backward; deprecated.

    Parameters
    ----------
    inputs : Tensor or tuple of Tensor
        By those that require grad is differentiated.
    output : Tensor
        Computed from them.
    nondet_tol : float, default 0.0
        How far two backwards may differ.
    grad_out : float, default 1.0
        Nothing else.

    Returns
    -------
    jacobians : tuple of Tensor
        A row for each element of the input, a column for each of the output.
    reentrant, sizes_ok, types_ok : bool
        Whether two backwards agree, and whether gradients had the right shapes and dtypes.

    Raises
    ------
    ValueError
        `grad_out` is not 1, or something is complex.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> from pytensorlib.autograd.gradcheck import get_analytical_jacobian
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # gradcheck is the way now
    ...     get_analytical_jacobian(x, x.square())[0]
    (tensor([[2., 0.],
            [0., 4.]], dtype=torch.float64),)
    """
    given = _checked(_as_tuple(inputs))
    _old_api("get_analytical_jacobian", grad_out, [*given, output])
    first, second = (_analytical(output, given, False) for _ in range(2))
    reentrant = all(
        not a.numel() or bool((a - b).abs().max() <= nondet_tol)
        for a, b in zip(first, second, strict=True)
    )
    # The engine gives each tensor a gradient of its shape and dtype.
    return tuple(first), reentrant, True, True


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with central differences.

    Parameters
    ----------
    func : callable
        Takes `inputs` and returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple
        Those that require grad are checked; they should be float64.
    eps, atol, rtol : float
        Step of the difference, and the tolerances of the comparison.
    raise_exception : bool, default True
        Raise what is wrong; otherwise return False.
    nondet_tol : float, default 0.0
        How much two equal backwards may differ.
    check_undefined_grad, check_grad_dtypes, check_batched_grad : bool
        Also check missing output gradients, the dtypes of gradients, `is_grads_batched`.
    check_forward_ad, check_batched_forward_grad : bool
        Forward mode does not exist here; True raises NotImplementedError.
    check_backward_ad : bool, default True
        Check backward mode.
    fast_mode : bool, default False
        Compare one random projection of each Jacobian.
    masked : bool, optional
        Accepted: of sparse inputs the values are varied, whatever it says, for their gradients
        have their coordinates.

    Returns
    -------
    bool
        True if all agree.

    Raises
    ------
    GradcheckError
        Something does not agree.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    options = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad,
        "check_grad_dtypes": check_grad_dtypes,
        "check_batched_grad": check_batched_grad,
        "check_backward_ad": check_backward_ad,
        "check_forward_ad": check_forward_ad,
        "check_batched_forward_grad": check_batched_forward_grad,
        "fast_mode": fast_mode,
    }
    try:
        _run(func, _as_tuple(inputs), options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare the gradients of the gradients of `func` with central differences.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, fast_mode, masked
        As in `gradcheck`.
    grad_outputs : Tensor or tuple, optional
        What enters at the outputs; random numbers if not given.
    gen_non_contig_grad_outputs : bool, default False
        Make the random ones non-contiguous.
    check_undefined_grad, check_grad_dtypes, check_batched_grad : bool
        As in `gradcheck`.
    check_fwd_over_rev : bool, default False
        Forward mode does not exist here; True raises NotImplementedError.
    check_rev_over_rev : bool, default True
        Check backward mode.

    Returns
    -------
    bool
        True if all agree.

    Raises
    ------
    GradcheckError
        Something does not agree.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    given = _as_tuple(inputs)
    if grad_outputs is None:
        from ..testing import make_tensor

        firsts = tuple(
            make_tensor(
                o.shape,
                dtype=o.dtype,
                device=o.device,
                low=-1,
                high=1,
                requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for o in _differentiable(func(*given))
        )
    else:
        firsts = _as_tuple(grad_outputs)
    split = len(given)
    wanted = [_requires(x) for x in (*given, *firsts)]

    def gradient(*args: Any) -> tuple[Any, ...]:
        args = tuple(
            x.requires_grad_() if need else x for x, need in zip(args, wanted, strict=True)
        )
        tensors = [x for x, need in zip(args[:split], wanted, strict=False) if need]
        outputs = _differentiable(func(*args[:split]))
        grads = _grad(outputs, tensors, args[split:], create_graph=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        densified(gradient),
        (*given, *firsts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )
