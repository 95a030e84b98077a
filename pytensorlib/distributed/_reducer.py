"""Averages gradients over processes while a backward pass still computes others.

Parameters share buckets, in the reverse order of the module, which is about that in which their
gradients come. A bucket whose gradients are all there is reduced while the pass goes on; buckets
start in one order on all processes, because MPI matches calls by their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytensorlib as pt

from ._buffers import write
from ._collectives import MiB
from ._process_group import ProcessGroup
from ._reductions import all_reduce

__all__ = ["GradBucket", "Reducer", "in_buckets", "tensors_in"]

FIRST = MiB  # bytes of the first bucket: small, so that reducing begins early


class GradBucket:
    """Gradients that are reduced together, as a hook sees them.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def halve(state, bucket):
    ...     future = torch.futures.Future()
    ...     future.set_result(bucket.buffer() / 2)
    ...     return future
    """

    def __init__(self, index: int, parameters: Sequence[Any], is_last: bool) -> None:
        self._index, self._parameters, self._is_last = index, list(parameters), is_last
        first = self._parameters[0]
        sizes = [p.numel() for p in self._parameters]
        self._buffer = pt.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        self._sizes = sizes
        self.missing: set[int] = set()
        self.work: Any = None

    def index(self) -> int:
        """Return the bucket's number; they are reduced in this order."""
        return self._index

    def buffer(self) -> Any:
        """Return the gradients, one after the other in one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Put other numbers in their place.

        Parameters
        ----------
        buffer : Tensor
            Of the same shape.
        """
        write(self._buffer, buffer)

    def gradients(self) -> list[Any]:
        """Return the gradients as views of the buffer."""
        parts = self._buffer.split(self._sizes)
        return [part.view(p.shape) for part, p in zip(parts, self._parameters)]

    def parameters(self) -> list[Any]:
        """Return the parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Return whether no bucket comes after this one in a backward pass."""
        return self._is_last


def in_buckets(parameters: Sequence[Any], cap: int) -> list[list[int]]:
    """Return the parameters of each bucket: of one type and device, about `cap` bytes."""
    buckets: list[list[int]] = []
    last: dict[Any, tuple[list[int], int]] = {}
    for i in reversed(range(len(parameters))):
        p = parameters[i]
        kind, size = (p.dtype, p.device), p.numel() * p.element_size()
        limit = min(FIRST, cap) if not buckets or last.get(kind, ([], 0))[0] is buckets[0] else cap
        members, held = last.get(kind, ([], 0))
        if not members or held + size > limit:
            members, held = [], 0
            buckets.append(members)
        members.append(i)
        last[kind] = (members, held + size)
    return buckets


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in containers, and in the fields of objects that have some."""
    if isinstance(value, pt.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from tensors_in(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name))


def reached_from(outputs: Any) -> set[int]:
    """Return the identities of the leaves that have a part in some tensors."""
    found, seen = set(), set()
    stack = [t.grad_fn for t in tensors_in(outputs) if t.grad_fn is not None]
    found = {id(t) for t in tensors_in(outputs) if t.grad_fn is None}
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found.add(id(leaf))
        stack += [n for n, _ in node.next_functions if n is not None]
    return found


class Reducer:
    """The buckets of a module's parameters, and what has come of a backward pass.

    Parameters
    ----------
    named : list
        The names and parameters that need gradients.
    group : ProcessGroup
        Whose gradients are averaged.
    cap : int
        Bytes of a bucket.
    find_unused : bool
        Look at each pass's graph for parameters that get no gradient.
    views : bool
        Let gradients be views of the buckets, which saves a copy.
    static : bool
        Look once: every pass uses the same parameters.
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Any]],
        group: ProcessGroup,
        cap: int,
        find_unused: bool,
        views: bool,
        static: bool,
    ) -> None:
        self.names = [name for name, _ in named]
        self.parameters = [p for _, p in named]
        self.group, self.views = group, views
        self.find_unused, self.static = find_unused, static
        self.unused: set[int] | None = None  # of a static graph, once it was looked at
        self.known: list[bool] | None = None  # which are used on any process
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.state: Any = None
        self.divisor: float = group.size()
        self.members = in_buckets(self.parameters, cap)
        last = len(self.members) - 1
        self.buckets = [
            GradBucket(n, [self.parameters[i] for i in some], n == last)
            for n, some in enumerate(self.members)
        ]
        self.place = {i: (n, j) for n, some in enumerate(self.members) for j, i in enumerate(some)}
        self.expects = False
        self.here: set[int] = set()
        self.without: set[int] = set()
        self.next = 0
        self.handles = [
            p.register_post_accumulate_grad_hook(lambda _, i=i: self.arrived(i))
            for i, p in enumerate(self.parameters)
        ]

    def remove(self) -> None:
        """Leave the parameters alone."""
        for handle in self.handles:
            handle.remove()

    def begin(self, outputs: Any) -> None:
        """Expect a backward pass from `outputs`."""
        if self.expects and self.here - self.without:
            names = [n for i, n in enumerate(self.names) if i not in self.here]
            raise RuntimeError(
                "DistributedDataParallel: Expected to have finished reduction in the prior "
                "iteration before starting a new one. These parameters got no gradient on rank "
                f"{self.group._ranks[self.group.rank()]}: {', '.join(names)}. Where the loss does "
                "not depend on all parameters, pass find_unused_parameters=True, and let the loss "
                "depend on what forward returned."
            )
        self.expects, self.next = True, 0
        self.here, self.without = set(), set()
        for n, bucket in enumerate(self.buckets):
            bucket.missing, bucket.work = set(self.members[n]), None
        looks = self.find_unused or self.static
        if looks and not (self.static and self.unused is not None):
            reached = reached_from(outputs)
            self.unused = {i for i, p in enumerate(self.parameters) if id(p) not in reached}
        if looks and self.unused:
            self.without = set(self.unused)
            for i in sorted(self.unused):
                self.mark(i)

    def arrived(self, i: int) -> None:
        """Take the gradient of a parameter, which is complete."""
        if self.expects:
            if i in self.without:
                raise RuntimeError(
                    f"DistributedDataParallel: {self.names[i]} got a gradient, and had no part in "
                    "what forward returned: the loss must depend on nothing else, and with "
                    "static_graph=True on the same parameters in every pass"
                )
            if i in self.here:
                raise RuntimeError(
                    "DistributedDataParallel: Expected to mark a variable ready only once, and "
                    f"{self.names[i]} got a second gradient before all others got their first: "
                    "run one backward pass for each forward, or no_sync() around all but the last"
                )
            self.mark(i)

    def mark(self, i: int) -> None:
        """Put a gradient into its bucket, and start the buckets that are complete."""
        self.here.add(i)
        n, j = self.place[i]
        bucket = self.buckets[n]
        self.fill(bucket, j)
        bucket.missing.discard(i)
        for one in self.buckets[: self.next]:
            if one.work is not None:
                one.work.done() if self.hook else one.work._poll()  # lets MPI move data
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self.start(self.buckets[self.next])
            self.next += 1
        if self.next == len(self.buckets):
            self.finish()

    def fill(self, bucket: GradBucket, j: int) -> None:
        """Write a gradient, divided, to its place."""
        parameter, place = bucket._parameters[j], bucket.gradients()[j]
        grad, divisor = parameter.grad, self.divisor if self.hook is None else 1.0
        with pt.no_grad():
            if grad is None:
                place.zero_()
            elif grad.layout != pt.strided:
                raise RuntimeError(
                    "DistributedDataParallel: sparse gradients cannot be averaged here; make the "
                    "embedding with sparse=False"
                )
            elif grad.data_ptr() == place.data_ptr():
                place.div_(divisor)
            else:
                pt.div(grad, divisor, out=place)
                if self.views:
                    parameter.grad = place

    def start(self, bucket: GradBucket) -> None:
        """Reduce a bucket, while others are still filled."""
        if self.hook is None:
            bucket.work = all_reduce(bucket.buffer(), group=self.group, async_op=True)
        else:
            bucket.work = self.hook(self.state, bucket)

    def finish(self) -> None:
        """Wait for all buckets, and give the parameters their gradients."""
        self.expects = False
        used = self.used_anywhere()
        for n, bucket in enumerate(self.buckets):
            found = bucket.work.wait()
            bucket.work = None
            if self.hook is not None:
                result = found[0] if isinstance(found, (list, tuple)) else found
                if result.data_ptr() != bucket.buffer().data_ptr():
                    bucket.set_buffer(result)
            with pt.no_grad():
                for i, part in zip(self.members[n], bucket.gradients()):
                    if used is None or used[i]:
                        self.give(self.parameters[i], part)

    def give(self, parameter: Any, part: Any) -> None:
        """Let a parameter have its part of a bucket."""
        if self.views:
            if parameter.grad is None or parameter.grad.data_ptr() != part.data_ptr():
                parameter.grad = part
        elif parameter.grad is None:
            parameter.grad = part.clone()
        else:
            parameter.grad.copy_(part)

    def used_anywhere(self) -> list[bool] | None:
        """Return which parameters got a gradient on any process, where that may differ."""
        if not (self.find_unused or self.static):
            return None
        if self.static and self.known is not None:
            return self.known
        marks = [i not in self.without for i in range(len(self.parameters))]
        counts = pt.tensor(marks, dtype=pt.int32)
        all_reduce(counts, group=self.group)
        self.known = [bool(k) for k in counts.tolist()]
        return self.known

    def shadow(self) -> None:
        """Take part in the reduction of the others' pass, with nothing of one's own."""
        self.expects, self.next = True, 0
        for bucket in self.buckets:
            bucket.buffer().zero_()
            self.start(bucket)
        self.without = set(range(len(self.parameters)))
        self.used_anywhere()
        for bucket in self.buckets:
            bucket.work.wait()
            bucket.work = None
        self.expects = False
