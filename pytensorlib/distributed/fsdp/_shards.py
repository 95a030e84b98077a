"""Parameters of which each process keeps some rows, and has all rows while they are needed.

Zhao et al. 2023, arXiv:2304.11277, without its overlap: gathering all rows is an operation with a
derivative, whose gradient is summed over the processes row by row. What the forward pass saves of
gathered rows is only where they were; the backward pass gathers them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pytensorlib as pt

from ...nn.parameter import Parameter
from .._collectives import all_gather
from .._places import Place, mark, place_of
from .._process_group import ProcessGroup
from .._reduce import ReduceOp
from .._reductions import all_reduce, reduce_scatter

__all__ = ["Shards", "norm_of_all", "whole"]


def cut(n: int, size: int, rank: int) -> tuple[int, int]:
    """Return the first row and the end of a process's share, as `chunk` cuts."""
    rows = -(-n // size)
    return min(rank * rows, n), min((rank + 1) * rows, n)


def gathered(shards: Sequence[Any], places: Sequence[Place], dtype: Any) -> list[Any]:
    """Return the whole tensors that shards are of, by one call."""
    group = places[0].group
    kind = dtype or shards[0].dtype
    mine = pt.cat([s.detach().to(kind).reshape(-1) for s in shards])
    lengths = [[_count(p, r) for p in places] for r in range(group.size())]
    flats = [pt.empty(sum(some), dtype=kind, device=mine.device) for some in lengths]
    all_gather(flats, mine, group)
    parts = [flat.split(some) for flat, some in zip(flats, lengths)]
    return [pt.cat([part[i] for part in parts]).view(p.shape) for i, p in enumerate(places)]


def _count(place: Place, rank: int) -> int:
    """Return how many elements a process has."""
    first, end = cut(place.shape[0], place.group.size(), rank)
    row = 1
    for n in place.shape[1:]:
        row *= n
    return (end - first) * row


def whole(shard: Any) -> Any:
    """Return the tensor that a shard is a part of; all processes of its group call this."""
    place = place_of(shard)
    return shard if place is None else gathered([shard], [place], None)[0]


def norm_of_all(shards: Sequence[Any], norm_type: float) -> Any:
    """Return the norm of the gradients of which these shards have parts."""
    own = [pt.linalg.vector_norm(s.grad, norm_type) for s in shards if s.grad is not None]
    part = pt.linalg.vector_norm(pt.stack(own), norm_type) if own else pt.zeros(())
    place: Any = place_of(shards[0])
    group = place.group
    if norm_type == float("inf"):
        all_reduce(part, ReduceOp.MAX, group)
        return part
    part = part.double() ** norm_type
    all_reduce(part, group=group)
    return (part ** (1 / norm_type)).to(shards[0].dtype)


def marks(name: str, shard: Any, place: Place) -> Any:
    """Return what lets a state's tensor be known as the shard that it is."""

    def hook(module: Any, state: Any, prefix: str, _: Any) -> None:
        found = state.get(prefix + name)
        if found is not None and module._parameters[name] is shard:
            mark(found, place)

    return hook


class _Gather(pt.autograd.Function):
    """All rows of the parameters of a module; the gradient's rows are summed and divided."""

    @staticmethod
    def forward(ctx: Any, of: Shards, *shards: Any) -> Any:
        ctx.of = of
        return tuple(gathered(shards, of.places, of.param_dtype))

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> Any:
        return (None, *ctx.of.reduced(gs))


class Shards:
    """The parameters of a module that are cut into rows, and where they belong.

    Parameters
    ----------
    owners : list
        For each parameter the module and the name that it has there; one that several share
        stands in all of them.
    group : ProcessGroup
        Who has a share.
    again : bool
        Free the gathered rows after the forward pass, and gather them again for the backward one.
    param_dtype, reduce_dtype : dtype, optional
        What the module computes in, and what gradients are summed in.
    """

    def __init__(
        self,
        owners: Sequence[list[tuple[Any, str]]],
        group: ProcessGroup,
        again: bool,
        param_dtype: Any = None,
        reduce_dtype: Any = None,
    ) -> None:
        self.owners, self.group, self.again = list(owners), group, again
        self.param_dtype, self.reduce_dtype = param_dtype, reduce_dtype
        self.syncs = True
        self.divisor: float = group.size()
        self.held: list[Any] | None = None  # whole gradients of passes that were not summed
        self.cache: dict[int, Any] = {}
        self.shards: list[Any] = []
        self.places: list[Place] = []
        for uses in self.owners:
            module, name = uses[0]
            full = module._parameters[name]
            if full.dim() == 0:
                raise ValueError(
                    f"fully_shard: {name} is a scalar, which has no rows to share out; make it a "
                    "vector of one element, or name it in ignored_params"
                )
            first, end = cut(len(full), group.size(), group.rank())
            place = Place(tuple(full.shape), first, group)
            shard = Parameter(full.detach()[first:end].clone(), full.requires_grad)
            self.shards.append(mark(shard, place))
            self.places.append(place)
            for one, where in uses:
                one._register_state_dict_hook(marks(where, shard, place))
        self.put(self.shards)
        types = list(dict.fromkeys(s.dtype for s in self.shards))
        if len(types) > 1 and param_dtype is None:
            raise ValueError(
                f"fully_shard: the parameters of a module must be of one type: {types}"
            )

    def put(self, tensors: Sequence[Any]) -> None:
        """Let the modules see these as their parameters."""
        for uses, tensor in zip(self.owners, tensors):
            for module, name in uses:
                module._parameters[name] = tensor

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Let the modules have all rows during a forward pass."""
        if not self.shards:
            yield
            return
        fulls = _Gather.apply(self, *self.shards)
        known = {f.untyped_storage().data_ptr(): i for i, f in enumerate(fulls) if f.numel()}

        def note(x: Any) -> Any:
            i = known.get(x.untyped_storage().data_ptr())
            if i is None:
                return x.detach()
            return i, x.dtype, x.shape, x.stride(), x.storage_offset()

        freeing: Any = contextlib.nullcontext()
        if self.again and pt.is_grad_enabled():
            freeing = pt.autograd.graph.saved_tensors_hooks(note, self.found_again)
        self.put(fulls)
        try:
            with freeing:
                yield
        finally:
            self.put(self.shards)

    def found_again(self, saved: Any) -> Any:
        """Return what the forward pass saved, of rows that are gathered anew."""
        if isinstance(saved, pt.Tensor):
            return saved
        i, dtype, shape, stride, offset = saved
        if not self.cache:
            with pt.no_grad():
                self.cache = dict(enumerate(gathered(self.shards, self.places, self.param_dtype)))
        if self.cache[i].dtype != dtype:
            raise RuntimeError("fully_shard: a saved tensor has another type than its parameter")
        return self.cache[i].as_strided(shape, stride, offset)

    def reduced(self, gs: Sequence[Any]) -> list[Any]:
        """Return the shards' gradients, of those of all rows here."""
        self.cache = {}
        fulls = [
            pt.zeros(p.shape, dtype=self.param_dtype or s.dtype, device=s.device)
            if g is None
            else g
            for g, p, s in zip(gs, self.places, self.shards)
        ]
        if self.held is not None:
            fulls = [g + h for g, h in zip(fulls, self.held)]
            self.held = None
        if not self.syncs:
            self.held = [g.detach() for g in fulls]
            return [None] * len(fulls)
        kind = self.reduce_dtype or fulls[0].dtype
        size = self.group.size()
        parts = [
            pt.cat([g[slice(*cut(len(g), size, r))].to(kind).reshape(-1) for g in fulls])
            for r in range(size)
        ]
        out = pt.empty_like(parts[self.group.rank()])
        reduce_scatter(out, parts, group=self.group)
        out.div_(self.divisor)
        rows = out.split([s.numel() for s in self.shards])
        return [
            row.view(s.shape).to(s.dtype) if s.requires_grad else None
            for row, s in zip(rows, self.shards)
        ]

    def take(self, fulls: Sequence[Any]) -> None:
        """Let the shards have the rows of whole tensors."""
        with pt.no_grad():
            for s, place, full in zip(self.shards, self.places, fulls):
                s.copy_(full[place.first : place.first + len(s)])

    @contextlib.contextmanager
    def summoned(self, writeback: bool) -> Iterator[None]:
        """Let the modules have all rows as parameters; what is written to them may stay."""
        fulls = [Parameter(f) for f in gathered(self.shards, self.places, None)]
        self.put(fulls)
        try:
            yield
        finally:
            self.put(self.shards)
        if writeback:
            self.take(fulls)
