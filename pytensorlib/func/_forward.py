"""Products with Jacobians, and Jacobians from their columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .. import _C
from ..autograd._levels import Linear
from ..autograd.forward_ad import _check_shape, _set_fwd_grad_enabled
from ..utils import _pytree as pytree
from ._reverse import Argnums, Func, Run, basis, jacrev, refuse_complex
from ._vmap import Draws, check_randomness, vmap

__all__ = ["hessian", "jacfwd", "jvp", "linearize"]

JVP = "jvp(f, primals, tangents)"


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


class Tangents(Run):
    """A run whose outputs are differentiated along tangents of its inputs."""

    def __init__(
        self,
        caller: str,
        func: Func,
        args: tuple[Any, ...],
        argnums: Argnums | None = None,
        has_aux: bool = False,
    ) -> None:
        with _set_fwd_grad_enabled(True):
            super().__init__(caller, func, args, {}, argnums, has_aux, forward=True)
        self.check_outputs()
        self.linear = Linear(self.level, self.outputs)

    def check_input(self, x: Any) -> None:
        """Refuse an input that has no tangent."""
        if isinstance(x, _C.Tensor) and not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise ValueError(
                f"{self.caller}: Expected primal to be floating point or complex, but got: "
                f"{x.dtype}"
            )
        super().check_input(x)

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the product of the Jacobian with tangents for each output; None for zeros."""
        tangents = [_fitted(x, t) for x, t in zip(self.level.like, tangents, strict=True)]
        create = self.level.recording and (self.outside or any(t.requires_grad for t in tangents))
        products = self.linear(tangents, create)
        left = iter(self.level.leave([p for p in products if p is not None], create))
        return [None if p is None else next(left) for p in products]


def jvp(
    func: Func, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return what `func` gives, and the product of its Jacobian with `tangents`.

    Two backwards compute it: the product with the transposed Jacobian is linear in its vector, so
    its own transpose is what is asked for. ``no_grad`` within `func` does not stop tangents.

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
    run = Tangents(JVP, func, primals, None, has_aux)
    products = run.push(along)
    if strict and None in products:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
            "This is not allowed with strict=True."
        )
    output = run.level.leave(run.outputs)
    values = [_C.zeros_like(o) if p is None else p for p, o in zip(products, output, strict=True)]
    both = run.outputs_spec.unflatten(output), run.outputs_spec.unflatten(values)
    return (*both, run.aux) if has_aux else both


def linearize(func: Func, *primals: Any) -> tuple[Any, Func]:
    """Return what `func` gives, and a function for products with its Jacobian.

    `func` runs once, and what it saved is kept for every product.

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
        An output is no tensor; or, of `jvp_fn`, the tangents do not fit the primals.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> output, jvp_fn = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> output, jvp_fn(torch.ones(2)), jvp_fn(torch.tensor([0.0, 1.0]))
    (tensor([1., 4.]), tensor([2., 4.]), tensor([0., 4.]))
    """
    run = Tangents("linearize(f, *primals)", func, primals)
    output = run.level.leave(run.outputs)

    def jvp_fn(*tangents: Any) -> Any:
        flat, spec = pytree.tree_flatten(tangents)
        if spec != run.spec:
            raise RuntimeError(
                f"Expected the tangents {spec} to have the same argspec as the primals {run.spec}"
            )
        for i, (x, t) in enumerate(zip(run.level.like, flat, strict=True)):
            for what in ("shape", "dtype"):
                if getattr(t, what) != getattr(x, what):
                    raise RuntimeError(
                        f"tangent:{i} with {what} {getattr(t, what)} in flattened pytree doesn't "
                        f"match the {what} {getattr(x, what)} of the corresponding primal."
                    )
        pairs = zip(run.push(flat), output, strict=True)
        return run.outputs_spec.unflatten([_C.zeros_like(o) if p is None else p for p, o in pairs])

    return run.outputs_spec.unflatten(output), jvp_fn


def columns(run: Tangents, randomness: str) -> list[list[Any]]:
    """Return the Jacobian of each output for each input, by one product for all of its elements."""
    outputs = [o.detach() for o in run.outputs]
    zeros = [_C.zeros_like(x.detach()) for x in run.level.like]
    blocks: list[list[Any]] = [[] for _ in outputs]
    for place, x in enumerate(zeros):

        def push(tangent: Any, place: int = place) -> list[Any]:
            found = run.push([*zeros[:place], tangent, *zeros[place + 1 :]])
            pairs = zip(found, outputs, strict=True)
            return [_C.zeros_like(o) if p is None else p for p, o in pairs]

        parts = vmap(push, out_dims=-1, randomness=randomness)(basis(x))
        for block, part, o in zip(blocks, parts, outputs, strict=True):
            block.append(part.reshape((*o.shape, *x.shape)))
    return blocks


def jacfwd(
    func: Func, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Func:
    """Return a function that gives the Jacobian of `func`, from its columns.

    `func` runs once; the products of `jvp` for all elements of an argument are computed at once by
    `vmap`. `jacrev` is quicker where there are more inputs than outputs.

    Parameters
    ----------
    func : callable
        Returns a tensor, or a container of tensors.
    argnums : int or tuple of int, default 0
        The arguments by which is differentiated: tensors, or containers of tensors.
    has_aux : bool, default False
        Whether `func` returns a pair, the second part of which is handed on as it is.
    randomness : {"error", "same", "different"}, default "error"
        Whether `func` may draw random numbers. All columns are those of one run, so "same" and
        "different" are the same.

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
        draws = Draws(randomness)
        run = Tangents(JVP, func, args, argnums, has_aux)
        draws.check()
        refuse_complex("jacfwd", run.outputs, "outputs")
        jacobian = run.outputs_spec.unflatten(
            [run.spec.unflatten(b) for b in columns(run, randomness)]
        )
        return (jacobian, run.aux) if has_aux else jacobian

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
