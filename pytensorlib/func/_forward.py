"""Products with Jacobians, and Jacobians from their columns, by forward mode."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C
from ..autograd.forward_ad import _check_shape, _Level, _set_fwd_grad_enabled
from ..utils import _pytree as pytree
from ._batch import Batch
from ._reverse import Argnums, Func, basis, chosen, jacrev, refuse_complex, split_aux
from ._vmap import check_randomness

__all__ = ["hessian", "jacfwd", "jvp", "linearize"]

JVP = "jvp(f, primals, tangents)"
LINEARIZE = "linearize(f, *primals)"


def _fitted(x: Any, tangent: Any) -> Any:
    """Return a tangent in the type of its primal."""
    if not (tangent.dtype.is_floating_point or tangent.dtype.is_complex):
        raise ValueError(
            f"Expected tangent to be floating point or complex, but got: {tangent.dtype}"
        )
    _check_shape(x, tangent)
    if tangent.dtype.is_complex and not x.dtype.is_complex:
        tangent = tangent.real
    return tangent.to(x.dtype)


def check_primal(caller: str, x: Any) -> None:
    """Refuse an input that has no tangent."""
    if not isinstance(x, _C.Tensor):
        raise ValueError(f"{caller}: Thing passed to transform API must be Tensor, got {type(x)}")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise ValueError(
            f"{caller}: Expected primal to be floating point or complex, but got: {x.dtype}"
        )


def check_outputs(caller: str, outputs: list[Any]) -> None:
    """Refuse outputs that are not tensors, or none."""
    if not outputs or outputs == [None]:
        raise RuntimeError(
            f"{caller}: Expected f to be a function that has non-empty output "
            f"(got output = {outputs})"
        )
    for o in outputs:
        if not isinstance(o, _C.Tensor):
            raise RuntimeError(
                f"{caller}: expected f(*primals) to return only tensors, got unsupported "
                f"type {type(o)}"
            )


def follow(
    caller: str, func: Func, level: _Level, args: list[Any], has_aux: bool
) -> tuple[list[Any], list[Any], Any, Any]:
    """Return what a function of tensors with tangents gives: outputs, tangents, form, and aux.

    `args` is emptied: what nobody else keeps is gone when the function has returned.
    """
    with _set_fwd_grad_enabled(True), level:
        result = func(*args)
    args.clear()
    output, aux = split_aux(caller, result, has_aux)
    outputs, spec = pytree.tree_flatten(output)
    check_outputs(caller, outputs)
    beside = [a for a in pytree.tree_leaves(aux) if isinstance(a, _C.Tensor)]
    del result, output
    if level.core.captured([*outputs, *beside]):
        raise RuntimeError(
            f"{caller}: During a grad (vjp, jvp, grad, etc) transform, the function provided "
            "attempted to call in-place operation that would mutate a captured Tensor. Pass the "
            "tensor to the function as an argument, or return its new value."
        )
    pairs = [level.leave(o) for o in outputs]
    aux = pytree.tree_map(lambda a: level.leave(a)[0], aux)
    return [p for p, _ in pairs], [t for _, t in pairs], spec, aux


def jvp(
    func: Func, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return what `func` gives, and the product of its Jacobian with `tangents`.

    `func` runs once, each operator with its tangent beside it, so nothing is kept for later: the
    memory is that of one pass. Transforms nest: ``jvp(grad(f))`` is the product of a Hessian with a
    vector. ``no_grad`` within `func` does not stop tangents. What `func` writes to its arguments is
    written to `primals`, and to `tangents`.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    primals : tuple of (Tensor or container of Tensor)
        The arguments.
    tangents : tuple of (Tensor or container of Tensor)
        In the form, shapes and dtypes of `primals`.
    strict : bool, default False
        Raise where an output depends on no argument, instead of giving zeros.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.

    Returns
    -------
    output, jvp_out : Tensor or container
        What `func` gives, and the product in the same form.
    aux : object
        The second part, with `has_aux`.

    Raises
    ------
    RuntimeError
        Primals and tangents do not fit each other, an output is no tensor, or `strict` forbids it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.jvp(lambda x: x.prod(), (torch.tensor([2.0, 3.0]),), (torch.tensor([1.0, 0.0]),))
    (tensor(6.), tensor(3.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = pytree.tree_flatten(primals)
    along, along_spec = pytree.tree_flatten(tangents)
    if spec != along_spec:
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {spec} and tangents with structure {along_spec}"
        )
    for name, values in (("primals", flat), ("tangents", along)):
        if not values:
            raise RuntimeError(f"{JVP}: Expected {name} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, _C.Tensor):
                raise RuntimeError(
                    f"{JVP}: Expected {name} to only contain Tensors, got {type(value)}"
                )
    level = _Level(transform=True)
    for x in flat:
        check_primal(JVP, x)
    pairs = zip(flat, along, strict=True)
    args = list(spec.unflatten([level.core.enter(x, _fitted(x, t)) for x, t in pairs]))
    output, products, form, aux = follow(JVP, func, level, args, has_aux)
    if strict and None in products:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    values = [_C.zeros_like(o) if p is None else p for p, o in zip(products, output, strict=True)]
    both = form.unflatten(output), form.unflatten(values)
    return (*both, aux) if has_aux else both


def linearize(func: Func, *primals: Any) -> tuple[Any, Func]:
    """Return what `func` gives, and a function for products with its Jacobian.

    `func` runs once, in forward mode. What it computes of tangents is noted as a program, which
    `jvp_fn` runs: what depends on the primals alone is computed once, random numbers are drawn
    once. Tensors that the program reads must not be written to as long as it is used.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    *primals : Tensor or container of Tensor
        The arguments.

    Returns
    -------
    output : Tensor or container
        What `func` gives.
    jvp_fn : callable
        Takes tangents, one for each of `primals` in its form, and gives their product in the form
        of the output.

    Raises
    ------
    RuntimeError
        An output is no tensor; or, of `jvp_fn`, the tangents do not fit the primals, or a tensor
        that it reads was written to.
    NotImplementedError
        An operator within `func` would have to read elements of a tangent.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> output, jvp_fn = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> output, jvp_fn(torch.ones(2)), jvp_fn(torch.tensor([0.0, 1.0]))
    (tensor([1., 4.]), tensor([2., 4.]), tensor([0., 4.]))
    """
    flat, spec = pytree.tree_flatten(primals)
    for x in flat:
        check_primal(LINEARIZE, x)
    level, program = _Level(transform=True), _C._Linear()
    args = list(spec.unflatten([level.core.enter(x, program.input(x)) for x in flat]))
    program.start()
    try:
        output, products, form, _ = follow(LINEARIZE, func, level, args, False)
    finally:
        program.stop()
    program.finish(products, output)
    like = [(x.shape, x.device, x.dtype) for x in flat]
    zeros = {i: _C.zeros_like(output[i]) for i, p in enumerate(products) if p is None}
    del flat, products

    def jvp_fn(*tangents: Any) -> Any:
        flat, tangents_spec = pytree.tree_flatten(tangents)
        if tangents_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {tangents_spec} to have the same argspec as the primals "
                f"{spec}"
            )
        for i, (t, wanted) in enumerate(zip(flat, like, strict=True)):
            for what, want in zip(("shape", "device", "dtype"), wanted, strict=True):
                if getattr(t, what) != want:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't "
                        f"match the {what} {want} of the corresponding primal."
                    )
        found = enumerate(program(flat))
        return form.unflatten([zeros[i].clone() if p is None else p for i, p in found])

    return form.unflatten(output), jvp_fn


def bases(leaves: list[Any]) -> list[Any]:
    """Return tangents for all elements of all leaves at once: 1 at one of them, 0 elsewhere."""
    if len(leaves) == 1:
        return [basis(leaves[0])]
    total = sum(x.numel() for x in leaves)
    found, start = [], 0
    for x in leaves:
        part = _C.zeros(total, x.numel(), dtype=x.dtype, device=x.device)
        part.narrow(0, start, x.numel()).fill_diagonal_(1)
        found.append(part.view(total, *x.shape))
        start += x.numel()
    return found


def jacfwd(
    func: Func, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Func:
    """Return a function that gives the Jacobian of `func`, from its columns.

    `func` runs once, with the tangents of all elements of its arguments at once: what `vmap` of
    `jvp` computes. `jacrev` is quicker where there are more inputs than outputs.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.
    randomness : {"error", "same", "different"}, default "error"
        Whether `func` may draw random numbers, and whether each column gets the same ones.

    Returns
    -------
    callable
        Takes what `func` takes; gives, in the form of the output and within it of the arguments,
        tensors of shape (*output, *argument), or a pair of those and the second part.

    Raises
    ------
    RuntimeError
        Something is complex, an output is no tensor, `argnums` does not fit the arguments, or
        `func` drew random numbers and may not.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.jacfwd(lambda x: x * x.sum())(torch.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    check_randomness(randomness)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        refuse_complex("jacfwd", pytree.tree_leaves(args), "inputs")
        places = chosen(argnums, len(args))
        picked = args[places[0]] if isinstance(argnums, int) else tuple(args[i] for i in places)
        leaves, spec = pytree.tree_flatten(picked)
        for x in leaves:
            check_primal(JVP, x)
        sizes = [x.numel() for x in leaves]
        level, batch = _Level(transform=True), Batch(max(sum(sizes), 1), randomness)
        tangents: list[Any] = [None] * len(leaves)
        if sum(sizes):
            tangents = [batch.enter(t, 0) for t in bases(leaves)]
        with batch:
            pairs = zip(leaves, tangents, strict=True)
            inside = spec.unflatten([level.core.enter(x, t) for x, t in pairs])
            given = list(args)
            for place, value in zip(
                places, (inside,) if isinstance(argnums, int) else inside, strict=True
            ):
                given[place] = value
            output, products, form, aux = follow(JVP, func, level, given, has_aux)
        refuse_complex("jacfwd", output, "outputs")
        blocks = []
        for o, product in zip(output, products, strict=True):
            parts: Any
            if product is None or not sum(sizes):
                parts = [x.new_zeros(*o.shape, x.numel(), dtype=o.dtype) for x in leaves]
            else:
                parts = batch.leave(product, -1).split(sizes, -1)
            shaped = zip(parts, leaves, strict=True)
            blocks.append(spec.unflatten([p.reshape((*o.shape, *x.shape)) for p, x in shaped]))
        jacobian = form.unflatten(blocks)
        if not has_aux:
            return jacobian
        return jacobian, pytree.tree_map(lambda a: batch.whole(a)[0], aux)

    return wrapped


def hessian(func: Func, argnums: Argnums = 0) -> Func:
    """Return a function that gives the second derivatives of `func`: ``jacfwd(jacrev(func))``.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.

    Returns
    -------
    callable
        Takes what `func` takes; gives, in the form of the output and twice that of the arguments,
        tensors of shape (*output, *argument, *argument).

    Raises
    ------
    RuntimeError
        Something is complex, an output is no tensor, or `argnums` does not fit the arguments.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.func.hessian(lambda x: x[0] * x[1] ** 2)(torch.tensor([1.0, 2.0]))
    tensor([[0., 4.],
            [4., 2.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
