"""Run a program in a library, line by line, and compare what two libraries did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .compare import Finding

RELATIVE = {"float64": 1e-8, "float32": 2e-4}


@dataclass
class State:
    """A tensor after a line."""

    values: np.ndarray
    facts: dict[str, Any]


def state(tensor: Any, born: int = 0) -> State:
    """Return what a tensor is like; `born` is its version when it was made."""
    facts = {
        "dtype": str(tensor.dtype).rsplit(".", maxsplit=1)[-1],
        "shape": tuple(tensor.shape),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "writes": tensor._version - born,
        "retains_grad": tensor.retains_grad,
    }
    return State(np.array(tensor.detach().clone().numpy()), facts)


@dataclass
class Event:
    """What a line did."""

    line: str
    error: BaseException | None = None
    states: dict[str, State] = field(default_factory=dict)


class Trace:
    """A program as it runs in one library."""

    def __init__(self, module: Any) -> None:
        from .graphs import PRELUDE

        self.space: dict[str, Any] = {"torch": module, "F": module.nn.functional}
        exec(_compiled(PRELUDE), self.space)
        self.tensors: dict[str, Any] = {}
        self.born: dict[str, int] = {}
        self.events: list[Event] = []

    def step(self, line: str) -> bool:
        """Run a line. Return whether the program may go on: a failed backward ends it."""
        event = Event(line)
        self.events.append(event)
        try:
            exec(_compiled(line), self.space)
        except Exception as error:
            event.error = error
            return "backward(" not in line and "grad(" not in line
        target = line.split(": ")[-1].split(" = ")[0].strip(", ")
        made = self.space.get(target)
        if isinstance(made, self.space["torch"].Tensor):
            self.tensors[target] = made
            self.born[target] = made._version
            try:
                event.states[target] = state(made, made._version)
            except RuntimeError as error:
                event.error = error
        elif target.isidentifier() and target not in self.tensors:
            self.space.pop(target, None)  # a gradient that is None
        return True

    def finish(self) -> None:
        """Keep the last state of every tensor and of its gradient, unless a backward failed: how
        far that came is open.
        """
        last = Event("at the end")
        if self.events and self.events[-1].error is not None:
            return
        for name, tensor in self.tensors.items():
            try:
                last.states[name] = state(tensor, self.born[name])
            except RuntimeError as error:  # a view whose base was written where that is forbidden
                last.states[name] = State(np.zeros(0), {"error": type(error).__name__})
                continue
            if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
                last.states[f"{name}.grad"] = grad = state(tensor.grad)
                del grad.facts["writes"]  # whether a sum was made in place is the engine's affair
        self.events.append(last)

    @property
    def log(self) -> list[Any]:
        return self.space["log"]

    def end(self) -> str:
        failed = sum(e.error is not None for e in self.events)
        return "ok" if not failed else "some lines fail"


_cache: dict[str, Any] = {}


def _compiled(source: str) -> Any:
    """Compile a source once: both libraries run the same code."""
    if len(_cache) > 500:
        _cache.clear()
    if source not in _cache:
        _cache[source] = compile(source, "<program>", "exec")
    return _cache[source]


def replayed(lines: list[str], module: Any) -> Trace:
    """Return what a library does with a program."""
    trace = Trace(module)
    for line in lines:
        if not trace.step(line):
            break
    trace.finish()
    return trace


def differences(lines: list[str], ours: Trace, theirs: Trace, peer: Any) -> list[Finding]:
    """Return the first difference between two runs of a program."""
    for x, y in zip(ours.events, theirs.events):
        found = _event(x, y)
        if found is None:
            continue
        numeric = found.category == "VALUE" and any("float32" in line for line in lines)
        if numeric and _no_worse(lines, ours, theirs, peer):
            return []
        return [Finding(found.category, f"{x.line}: {found.detail}")]
    if len(ours.events) != len(theirs.events):
        return [Finding("EVENTS", f"{len(ours.events)} lines for {len(theirs.events)}")]
    if not _same_log(ours.log, theirs.log):
        return [Finding("HOOKS", f"{ours.log} for {theirs.log}"[:300])]
    return []


def shrunk(lines: list[str], category: str, ours: Any, peer: Any) -> tuple[list[str], Finding]:
    """Leave out lines as long as the same kind of difference remains."""
    found = judged(lines, ours, peer)
    if not found:
        return lines, Finding(category, "not found again")
    best = found[0]
    at = len(lines) - 1
    while at >= 0:
        fewer = lines[:at] + lines[at + 1 :]
        found = judged(fewer, ours, peer)
        if found and found[0].category == category:
            lines, best = fewer, found[0]
        at -= 1
    return lines, best


def judged(lines: list[str], ours: Any, peer: Any) -> list[Finding]:
    """Run a program in both libraries and return the differences."""
    return differences(lines, replayed(lines, ours), replayed(lines, peer), peer)


def _event(x: Event, y: Event) -> Finding | None:
    if x.error is not None or y.error is not None:
        if x.error is None:
            return Finding("ACCEPTED", f"PyTorch {_text(y.error)}")
        if y.error is None:
            return Finding("REFUSED", _text(x.error))
        if type(y.error).__name__ not in {c.__name__ for c in type(x.error).__mro__}:
            return Finding("ERROR_CLASS", f"{_text(x.error)} | PyTorch {_text(y.error)}")
        return None
    if x.states.keys() != y.states.keys():
        only = [f"only ours {n}" for n in x.states if n not in y.states]
        only += [f"only PyTorch's {n}" for n in y.states if n not in x.states]
        return Finding("STATE", ", ".join(only))
    for name, one in x.states.items():
        two = y.states[name]
        for fact, value in one.facts.items():
            if value != two.facts.get(fact):
                return Finding("FACT", f"{name}.{fact} {value} for {two.facts.get(fact)}")
        if not _close(one.values, two.values, one.facts.get("dtype", "")):
            at = np.argmax(np.abs(np.nan_to_num(one.values - two.values)).reshape(-1))
            a, b = one.values.reshape(-1)[at], two.values.reshape(-1)[at]
            return Finding("VALUE", f"{name}[{at}] {a!r} for {b!r}")
    return None


def _text(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"


def _close(x: np.ndarray, y: np.ndarray, dtype: str) -> bool:
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    relative = RELATIVE.get(dtype, 1e-8)
    largest = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
    with np.errstate(all="ignore"):
        absolute = relative * max(largest, 1e-3)
        return bool(np.allclose(x, y, rtol=relative, atol=absolute, equal_nan=True))


def _no_worse(lines: list[str], ours: Trace, theirs: Trace, peer: Any) -> bool:
    """Say whether ours is as near to the program in float64 as PyTorch is."""
    exact = replayed([line.replace("float32", "float64") for line in lines], peer)
    for x, y, z in zip(ours.events, theirs.events, exact.events):
        for name in x.states.keys() & y.states.keys() & z.states.keys():
            a, b, c = (e.states[name].values.astype(np.float64) for e in (x, y, z))
            if not a.shape == b.shape == c.shape:
                return True  # float64 took another way
            with np.errstate(all="ignore"):
                mine, other = (np.nan_to_num(np.abs(v - c)).max(initial=0.0) for v in (a, b))
                scale = np.nan_to_num(np.abs(c)).max(initial=0.0)
            if mine > 4 * other + 1e-5 * scale + 1e-6:
                return False
    return True


def _place(entry: Any) -> str:
    return repr([v for v in entry if not isinstance(v, float)])


def _same_log(x: list[Any], y: list[Any]) -> bool:
    """Compare logs: what hooks saw, numbers as near as float32 allows. The order of leaves is
    open.
    """
    if len(x) != len(y):
        return False
    if [*map(_place, x)] != [*map(_place, y)]:
        x, y = sorted(x, key=_place), sorted(y, key=_place)
    for one, two in zip(x, y):
        plain = [v for v in one if not isinstance(v, float)]
        if plain != [v for v in two if not isinstance(v, float)]:
            return False
        for a, b in zip(one, two):
            if isinstance(a, float) and not np.isclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True):
                return False
    return True
