"""Gradients, products with transposed Jacobians, and Jacobians from their rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from ..autograd._levels import Level, Watch, filled, gradients
from ..autograd.function import _watching
from ..utils import _pytree as pytree
from ._batch import Batch
from ._vmap import vmap

__all__ = ["grad", "grad_and_value", "jacrev", "vjp"]

Func = Callable[..., Any]
Argnums = int | tuple[int, ...]


def chosen(argnums: Argnums, count: int) -> list[int]:
    """Return the positions that `argnums` means, of so many arguments."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = []
    for one in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(one, int):
            raise RuntimeError(f"argnum must be int, got: {type(one)}")
        if not -count <= one < count:
            raise RuntimeError(f"Got argnum={one}, but only {count} positional inputs")
        places.append(one % count)
    if not places:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return places


def refuse_complex(caller: str, values: Sequence[Any], what: str) -> None:
    """Raise where a Jacobian would need the derivative of a complex number."""
    for index, value in enumerate(values):
        if isinstance(value, _C.Tensor) and value.dtype.is_complex:
            raise RuntimeError(
                f"{caller}: Expected all {what} to be real but received complex tensor at "
                f"flattened input idx: {index}"
            )


def split_aux(caller: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the output and what comes beside it."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{caller}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


class Run:
    """One run of a function at a level of its own, and what it returned.

    `argnums` None means that all arguments are differentiated.
    """

    def __init__(
        self,
        caller: str,
        func: Func,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Argnums | None,
        has_aux: bool,
    ) -> None:
        self.caller, self.level = caller, Level()
        places = range(len(args)) if argnums is None else chosen(argnums, len(args))
        # One argument alone is not in a tuple.
        picked = args[places[0]] if isinstance(argnums, int) else tuple(args[i] for i in places)
        flat, self.spec = pytree.tree_flatten(picked)
        for x in flat:
            self.check_input(x)
        try:
            with _C._Mode(True, False):
                inside = self.spec.unflatten([self.level.enter(x) for x in flat])
                given = [self.aside(arg) for arg in args]
                kwargs = {name: self.aside(arg) for name, arg in kwargs.items()}
                new = (inside,) if isinstance(argnums, int) else inside
                for place, value in zip(places, new, strict=True):
                    given[place] = value
                with Watch() as watch:
                    watch.level = self.level
                    result = func(*given, **kwargs)
                output, aux = split_aux(caller, result, has_aux)
                self.outputs, self.outputs_spec = pytree.tree_flatten(output)
                flat_aux, aux_spec = pytree.tree_flatten(aux)
                del given, inside, new, value, result, output, aux
                watch.check(self.level, [*self.outputs, *flat_aux], caller)
        finally:
            self.level.open = False
        # Whether outputs depend on what is no input, or on what is behind an input.
        self.outside = self.level.recording and (
            _C._vmap_tracks()
            or self.level.reaches_out(o for o in self.outputs if isinstance(o, _C.Tensor))
            or _is_tracked([o for o in self.outputs if isinstance(o, _C.Tensor)])
        )
        self.aux = None
        if has_aux:
            tensors = iter(self.level.leave([t for t in flat_aux if isinstance(t, _C.Tensor)]))
            self.aux = aux_spec.unflatten(
                [next(tensors) if isinstance(t, _C.Tensor) else t for t in flat_aux]
            )

    def aside(self, arg: Any) -> Any:
        """Return an argument that is not differentiated."""
        if isinstance(arg, _C.Tensor):
            return self.level.aside(arg)
        return pytree.tree_map_only(_C.Tensor, self.level.aside, arg)

    def check_input(self, x: Any) -> None:
        """Refuse an input that cannot be differentiated."""
        if not isinstance(x, _C.Tensor):
            raise ValueError(
                f"{self.caller}: Thing passed to transform API must be Tensor, got {type(x)}"
            )
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise RuntimeError(
                f"{self.caller}: only Tensors of floating point and complex dtype can require "
                f"gradients, got an argument of dtype {x.dtype}"
            )

    def check_outputs(self) -> None:
        """Refuse outputs that are not tensors, or none."""
        if not self.outputs or self.outputs == [None]:
            raise RuntimeError(
                f"{self.caller}: Expected f to be a function that has non-empty output "
                f"(got output = {self.outputs})"
            )
        for o in self.outputs:
            if not isinstance(o, _C.Tensor):
                raise RuntimeError(
                    f"{self.caller}: expected f(*primals) to return only tensors, got unsupported "
                    f"type {type(o)}"
                )

    def pull(
        self,
        outputs: Sequence[Any],
        cotangents: Sequence[Any] | None,
        create_graph: bool,
        retain_graph: bool = True,
    ) -> tuple[Any, ...]:
        """Return the product of cotangents with the Jacobian of `outputs`, for each input."""
        with _C._Mode(True, False):
            found = gradients(outputs, self.level.edges, cotangents, create_graph, retain_graph)
        return filled(found, self.level.like)


def _is_tracked(tensors: list[Any]) -> bool:
    """Return whether a gradient is asked for of what tensors stand for in transforms at work."""
    for level in reversed(_watching.stack):
        if isinstance(level, Watch):
            continue
        below = []
        for t in tensors:
            own = level.core.has(t)
            parts = level.whole(t)[:1] if isinstance(level, Batch) else level.leave(t)
            below += [part for part in parts if part is not None] if own else [t]
            if own and any(part is not None and part.requires_grad for part in parts):
                return True
        tensors = below
    return False


def grad_and_value(func: Func, argnums: Argnums = 0, has_aux: bool = False) -> Func:
    """Return a function that gives the gradient of `func` and its value.

    Parameters
    ----------
    func : callable
        Returns a tensor of one element without dimensions.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.

    Returns
    -------
    callable
        Takes what `func` takes; gives ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Raises
    ------
    RuntimeError
        `func` returns something else, or `argnums` does not fit the arguments.
    ValueError
        An argument by which is differentiated is no tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    caller = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = Run(caller, func, args, kwargs, argnums, has_aux)
        whole = run.outputs_spec.is_leaf() and isinstance(run.outputs[0], _C.Tensor)
        if not whole:
            got = type(run.outputs[0]) if run.outputs_spec.is_leaf() else run.outputs_spec.type
            raise RuntimeError(f"{caller}: Expected f(*args) to return a Tensor, got {got}")
        (output,) = run.outputs
        if output.dim() != 0:
            raise RuntimeError(
                f"{caller}: Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        slopes = run.pull([output], None, run.outside)
        slope = run.spec.unflatten(run.level.leave(slopes, run.outside))
        (value,) = run.level.leave([output], run.outside)
        return slope, ((value, run.aux) if has_aux else value)

    return wrapped


def grad(func: Func, argnums: Argnums = 0, has_aux: bool = False) -> Func:
    """Return a function that gives the gradient of `func`.

    Transforms nest: ``grad(grad(f))`` is a second derivative, ``vmap(grad(f))`` gives gradients
    for each sample. What `func` takes from outside stays connected with its own past, but gets
    no part in the gradient. ``no_grad`` within `func` is heeded, outside of the call it is not.

    Parameters
    ----------
    func : callable
        Returns a tensor of one element without dimensions.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.

    Returns
    -------
    callable
        Takes what `func` takes; gives gradients in the form of the arguments, a tuple of them
        where `argnums` is one, or a pair of the gradients and the second part.

    Raises
    ------
    RuntimeError
        `func` returns something else, or `argnums` does not fit the arguments.
    ValueError
        An argument by which is differentiated is no tensor.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.tensor(3.0)
    >>> torch.func.grad(lambda x: x**3)(x), torch.func.grad(torch.func.grad(lambda x: x**3))(x)
    (tensor(27.), tensor(18.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        slope, value = both(*args, **kwargs)
        return (slope, value[1]) if has_aux else slope

    return wrapped


def pullback(
    caller: str, func: Func, args: tuple[Any, ...], argnums: Argnums | None, has_aux: bool
) -> Run:
    """Run `func` and check what it returned."""
    run = Run(caller, func, args, {}, argnums, has_aux)
    run.check_outputs()
    for o in run.outputs:
        if not (o.dtype.is_floating_point or o.dtype.is_complex):
            raise RuntimeError(
                f"{caller}: All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {o.dtype}"
            )
    return run


def vjp(func: Func, *primals: Any, has_aux: bool = False) -> Any:
    """Return what `func` gives, and a function for products with its transposed Jacobian.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    *primals : Tensor or container of Tensor
        The arguments, by all of which is differentiated.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.

    Returns
    -------
    output : Tensor or container
        What `func` gives.
    vjp_fn : callable
        Takes cotangents in the form of the output, and gives a tuple with their products for each
        of `primals`. It may be called any number of times.
    aux : object
        The second part, with `has_aux`.

    Raises
    ------
    RuntimeError
        An output is no tensor or has no derivative; or, of `vjp_fn`, the cotangents have another
        form than the output.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> output, vjp_fn = torch.func.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> vjp_fn(torch.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    run = pullback("vjp(f, *primals)", func, primals, None, has_aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        recording = _C.is_grad_enabled() if create_graph is None else create_graph
        flat, spec = pytree.tree_flatten(cotangents)
        if spec != run.outputs_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {spec}, primal output: {run.outputs_spec}"
            )
        for c in flat:
            if not isinstance(c, _C.Tensor):
                raise TypeError(
                    f"gradients can be either Tensors or None, but got {type(c).__name__}"
                )
        create = recording and (run.outside or any(c.requires_grad for c in flat))
        found = run.pull(run.outputs, flat, create, retain_graph)
        return run.spec.unflatten(run.level.leave(found, create))

    output = run.outputs_spec.unflatten(run.level.leave(run.outputs))
    return (output, vjp_fn, run.aux) if has_aux else (output, vjp_fn)


def basis(x: Any) -> Any:
    """Return one tensor like `x` for each of its elements, 1 there and 0 elsewhere."""
    one = _C.eye(x.numel(), dtype=x.dtype, device=x.device)
    return one.view(x.numel(), *x.shape)


def rows(run: Run, output: Any, chunk_size: int | None) -> list[Any]:
    """Return the Jacobian of one output for each input, by one backward for all elements."""

    def pull(cotangent: Any) -> tuple[Any, ...]:
        return run.pull([output], [cotangent], run.outside)

    found = vmap(pull, chunk_size=chunk_size)(basis(output))
    pairs = zip(found, run.level.like, strict=True)
    return [part.reshape((*output.shape, *x.shape)) for part, x in pairs]


def jacrev(
    func: Func,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Func:
    """Return a function that gives the Jacobian of `func`, from its rows.

    `func` runs once; one backward computes the rows of all elements of an output by `vmap`.
    `jacfwd` is quicker where there are more outputs than inputs.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.
    chunk_size : int, optional
        Positive; how many rows at most are computed at once, for less memory.

    Returns
    -------
    callable
        Takes what `func` takes; gives, in the form of the output and within it of the arguments,
        tensors of shape (*output, *argument), or a pair of those and the second part.

    Raises
    ------
    ValueError
        `chunk_size` is not positive.
    RuntimeError
        Something is complex, an output is no tensor, or `argnums` does not fit the arguments.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.jacrev(lambda x: x * x.sum())(torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        refuse_complex("jacrev", pytree.tree_leaves(args), "inputs")
        run = pullback("vjp(f, *primals)", func, args, argnums, has_aux)
        refuse_complex("jacrev", run.outputs, "outputs")
        blocks = [
            run.spec.unflatten(run.level.leave(rows(run, o, chunk_size), run.outside))
            for o in run.outputs
        ]
        jacobian = run.outputs_spec.unflatten(blocks)
        return (jacobian, run.aux) if has_aux else jacobian

    return wrapped
