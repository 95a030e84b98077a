"""Run a call in one library and keep what can be seen of it: results, memory, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .calls import STORED, Array, Call, Named

PATTERN = 7e77  # what freed memory is filled with: as float32 infinity, as an integer huge
SIZES = (1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 100, 128, 200, 256, 512, 1024, 4096)


@dataclass
class Seen:
    """A tensor as a caller sees it."""

    values: np.ndarray
    dtype: str
    strides: tuple[int, ...]
    grad: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


@dataclass
class Outcome:
    """What a call did."""

    kind: str  # "ok", "error", or "missing": no such form
    results: list[Any] = field(default_factory=list)  # Seen, or a plain value
    shared: list[list[bool]] = field(default_factory=list)  # memory, by result and argument
    memory: list[np.ndarray] = field(default_factory=list)  # of each argument, afterwards
    before: list[np.ndarray] = field(default_factory=list)
    gradients: list[Seen | None] | None = None
    backward_error: Exception | None = None
    error: BaseException | None = None

    def text(self) -> str:
        """Say how the call failed."""
        return f"{type(self.error).__name__}: {str(self.error)[:200]}"


class Library:
    """A library with PyTorch's names."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def function(self, call: Call) -> Callable[..., Any] | None:
        """Return the callable of a call's form, or None where there is no such form."""
        m, path = self.module, call.path
        root, _, rest = path.partition(".")
        base = path.rsplit(".", maxsplit=1)[-1]
        if root in ("prop", "swap", "einsum") and call.form in ("method", "inplace"):
            return None
        if root == "prop":
            return lambda x: getattr(x, rest)
        if root == "einsum":
            return lambda operands, equation, **k: m.einsum(equation, *operands, **k)
        if root == "swap":
            swapped = self._found(m, rest.removeprefix("torch."))
            return lambda a, b, **k: swapped(b, a, **k)
        if call.form == "inplace":
            return getattr(m.Tensor, base if base.endswith("_") else f"{base}_", None)
        if call.form == "method" and rest.count(".") == 0:
            return getattr(m.Tensor, base, None)
        return self._found(m.Tensor if root == "Tensor" else m, rest)

    @staticmethod
    def _found(where: Any, path: str) -> Any:
        for part in path.split("."):
            where = getattr(where, part, None)
        return where

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.module.Tensor)

    def numpy(self, tensor: Any) -> np.ndarray:
        """Return a copy of the values; bfloat16 as float32."""
        plain = tensor.detach()
        for resolve in ("resolve_conj", "resolve_neg"):
            if hasattr(plain, resolve):
                plain = getattr(plain, resolve)()
        if str(plain.dtype).endswith("bfloat16"):
            plain = plain.float()
        return np.array(plain.numpy())

    def tensor(self, values: np.ndarray, dtype: str) -> Any:
        made = self.module.from_numpy(np.array(values))
        return made.to(getattr(self.module, dtype)) if dtype in STORED else made

    def flat(self, value: Any) -> Iterator[Any]:
        """Yield the tensors and plain values of a result."""
        if isinstance(value, (list, tuple)):
            for item in value:
                yield from self.flat(item)
        elif isinstance(value, dict):
            yield from self.flat(list(value.values()))
        elif self.is_tensor(value) or isinstance(value, (int, float, complex, str)):
            yield value
        else:
            yield None if value is None else type(value).__name__

    def seen(self, tensor: Any) -> Seen:
        dtype = str(tensor.dtype).rsplit(".", maxsplit=1)[-1]
        return Seen(self.numpy(tensor), dtype, tuple(tensor.stride()), bool(tensor.requires_grad))

    def poison(self, pattern: float = PATTERN) -> None:
        """Fill memory that will be handed out again, so that what is never written shows."""
        m = self.module
        blocks = [m.full((n,), pattern, dtype=m.float64) for n in SIZES for _ in range(4)]
        del blocks

    def run(self, call: Call, pattern: float | None = None) -> Outcome:
        """Run a call. Panics and the like, which are no `Exception`, are let through."""
        outcome = Outcome("error")
        try:
            self._run(call, outcome, pattern)
        except Exception as error:
            outcome.kind, outcome.error = "error", error
        return outcome

    def _run(self, call: Call, outcome: Outcome, pattern: float | None) -> None:
        m = self.module
        function = self.function(call)
        if function is None:
            outcome.kind = "missing"
            return
        given = Arguments(self)
        args, kwargs = given.made(call.args), given.made(call.kwargs)
        outcome.before = [self.numpy(b) for b in given.bases]
        first = args[0] if args else None
        if call.form == "inplace" and self.is_tensor(first) and first.requires_grad:
            args = (first * 1, *args[1:])
        m.manual_seed(call.seed % 1000)
        try:
            if pattern is not None:
                self.poison(pattern)
            if call.form == "out":
                plain = function(*args, **kwargs)
                likes = list(self.flat(plain))
                if not likes or not all(self.is_tensor(like) for like in likes):
                    outcome.kind = "missing"
                    return
                outs = [self._out(call, like, given) for like in likes]
                m.manual_seed(call.seed % 1000)
                many = isinstance(plain, (list, tuple))
                function(*args, **kwargs, out=tuple(outs) if many else outs[0])
                found: list[Any] = outs
            else:
                found = list(self.flat(function(*args, **kwargs)))
            outcome.results = [self.seen(f) if self.is_tensor(f) else f for f in found]
            outcome.shared = [
                [_share(f, t) for t in given.tensors] if self.is_tensor(f) else [] for f in found
            ]
            if call.grad:
                self._differentiate(call, found, given, outcome)
            outcome.kind = "ok"
        finally:
            outcome.memory = [self.numpy(b) for b in given.bases]

    def _differentiate(
        self, call: Call, found: list[Any], given: Arguments, outcome: Outcome
    ) -> None:
        m = self.module
        leaves: list[Any] = []
        for t in given.tensors:
            if t.requires_grad and not any(t is leaf for leaf in leaves):
                leaves.append(t)
        ends = [f for f in found if self.is_tensor(f) and f.requires_grad]
        if not ends or not leaves:
            return
        rng = np.random.default_rng(call.seed)
        weights = [np.asarray(rng.uniform(0.5, 1.5, tuple(e.shape))) for e in ends]
        try:
            cotangents = [m.from_numpy(w).to(e.dtype) for w, e in zip(weights, ends)]
            gradients = m.autograd.grad(ends, leaves, cotangents, allow_unused=True)
            outcome.gradients = [None if g is None else self.seen(g) for g in gradients]
        except Exception as error:
            outcome.backward_error = error

    def _out(self, call: Call, like: Any, given: Arguments) -> Any:
        """Return a tensor for the result, lying in memory as the call says."""
        m, shape, dims = self.module, tuple(like.shape), like.dim()
        dtype = like.dtype
        match call.out:
            case "permuted" if dims > 1:
                order = tuple(reversed(range(dims)))
                return m.zeros(shape[::-1], dtype=dtype).permute(order)
            case "stepped" if dims:
                return m.zeros((*shape[:-1], 2 * shape[-1]), dtype=dtype)[..., ::2]
            case "empty":
                return m.zeros((0,), dtype=dtype)
            case "wrong":
                return m.zeros(tuple(n + 1 for n in shape), dtype=dtype)
            case "dtype":
                return m.zeros(shape, dtype=getattr(m, call.out_dtype))
            case "expanded" if dims:
                return m.zeros((1,) * dims, dtype=dtype).expand(shape)
            case "longer":
                return m.zeros((max(2 * like.numel(), 1),), dtype=dtype)
            case "input" if given.tensors and _alike(given.tensors[0], like):
                return given.tensors[0].detach()
            case "overlap" if given.bases and given.bases[0].numel() > like.numel():
                if given.bases[0].dtype != dtype:
                    return m.zeros(shape, dtype=dtype)
                return given.bases[0].as_strided(shape, like.contiguous().stride(), 1)
        return m.zeros(shape, dtype=dtype)


class Arguments:
    """The tensors of one call, made for one library."""

    def __init__(self, library: Library) -> None:
        self.lib = library
        self.bases: list[Any] = []
        self.tensors: list[Any] = []

    def made(self, value: Any) -> Any:
        """Return nested arguments with tensors and constants of the library."""
        if isinstance(value, Array):
            return self._tensor(value)
        if isinstance(value, Named):
            return getattr(self.lib.module, value.name)
        if isinstance(value, (list, tuple)):
            return type(value)(self.made(v) for v in value)
        if isinstance(value, dict):
            return {k: self.made(v) for k, v in value.items()}
        return np.array(value) if isinstance(value, np.ndarray) else value

    def _tensor(self, array: Array) -> Any:
        if array.alias is not None and array.alias < len(self.tensors):
            self.tensors.append(self.tensors[array.alias])
            return self.tensors[-1]
        layout = array.layout
        made = self.lib.tensor(array.values if layout is None else layout.memory, array.dtype)
        self.bases.append(made)
        if layout is not None:
            made = made.as_strided(array.values.shape, layout.strides, layout.offset)
        if array.grad:
            made = made.detach().requires_grad_()
        self.tensors.append(made)
        return made


def _alike(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and tuple(one.shape) == tuple(two.shape)


def _share(result: Any, argument: Any) -> bool:
    if not result.numel() or not argument.numel():
        return False
    return result.untyped_storage().data_ptr() == argument.untyped_storage().data_ptr()


class OnMeta(Library):
    """A library with every tensor on meta: only shapes, strides and types are seen."""

    def __init__(self, of: Library) -> None:
        super().__init__(of.module)
        self.of = of

    def function(self, call: Call) -> Callable[..., Any] | None:
        return self.of.function(call)

    def tensor(self, values: np.ndarray, dtype: str) -> Any:
        made = super().tensor(values, dtype)
        size, strides = made.shape, made.stride()
        return self.module.empty_strided(size, strides, dtype=made.dtype, device="meta")

    def numpy(self, tensor: Any) -> np.ndarray:
        return np.broadcast_to(np.float32(0), tuple(tensor.shape))

    def run(self, call: Call, pattern: float | None = None) -> Outcome:
        with self.module.device("meta"):
            return super().run(call)
