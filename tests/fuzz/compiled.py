"""Random programs with effects of Python between the operators, compiled and as they are.

A compiled function does what the function does: results, gradients, versions, hooks in their order,
random numbers, warnings, printed text, what is alive, and what an error leaves behind.
"""

from __future__ import annotations

import contextlib
import gc
import io
import random
import re
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import graphs, replay
from .compare import Finding

CALLS = 5
EFFECTS = (
    *("log.append({0}.sum().item())", "log.append({0}.tolist())", "print({0})", "print('here')"),
    *("log.append(float(np.sum({0}.detach().numpy())))", "log.append(str({0}.sum()))"),
    *("log.append('more' if {0}.sum() > 0 else 'less')", "log.append(bool({0}.isnan().any()))"),
    *("log.append(({0}._version, {0}.requires_grad, {0}.is_leaf, {0}.stride()))",),
    *("log.append(float({0}.grad.sum()))", "log.append({0}.data_ptr() != 0)"),
    *("count[0] += 1", "log.append(count[0])", "{0} = {0} * count[0]", "{0} = {0} + side"),
    *("torch.manual_seed(count[0])", "log.append(torch.rand(2).tolist())", "{0} = F.dropout({0})"),
    *(
        "{0} = {0} + torch.randn({0}.shape)",
        "log.append(random.random())",
        "{0} = {0} * random.random()",
    ),
    *("log.append(int(torch.get_rng_state().sum()))", "{0} = torch.rand_like({0})"),
    *("held.append({0})", "held.clear()", "refs.append(weakref.ref({0}))"),
    *("gc.collect(); log.append([r() is not None for r in refs])", "del {0}"),
    *("other(lambda x={0}: log.append(x.sum().item()))", "other(lambda x={0}: x.detach().mul_(2))"),
    *("torch.set_num_threads(1 + count[0] % 2)", "warnings.warn('seen ' + str(count[0]))"),
    *(
        "state.mul_(0.5).add_({0}.detach().sum())",
        "log.append(state.tolist())",
        "{0} = {0} * state",
    ),
    *("array += 1; log.append(float(shared.sum()))", "shared.mul_(2); log.append(array.tolist())"),
    *("{0} = {0} * w", "opt.zero_grad()", "opt.step()", "opt.param_groups[0]['lr'] *= 0.9"),
    *("({0} * w).sum().backward()", "log.append(w.grad is None)", "w.grad = None"),
    *(
        "{0} = torch.linalg.solve({0} @ {0}.mT + torch.eye({0}.shape[-2]), {0})",
        "w.data = w.data.clone()",
    ),
    *("{0} = {0}.index_select(0, torch.tensor([count[0] % 2]))", "{0} = {0}[:1 + count[0] % 2]"),
    *("raise ValueError('stop')", "log.append({0}.untyped_storage().nbytes())"),
    *("{0} = copied({0})", "{0} = inner({0})", "{0} = F.embedding(torch.tensor([count[0]]), {0})"),
    *(
        "with torch.no_grad(): w.add_(0.1)",
        "with torch.inference_mode(): log.append((w * 2).sum().item())",
    ),
    *("torch.use_deterministic_algorithms(count[0] % 2 == 0)", "held.append(w.grad)"),
)
SETUP = textwrap.dedent("""
    count, held, refs = [0], [], []
    side = 1.0
    state = torch.ones(3, dtype=torch.float64)
    array = np.ones(3)
    shared = torch.from_numpy(array)
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.{optimizer}([w], lr=0.01)
    inner = compile(lambda x: (x * 2).sin() + x)

    def other(f):
        def run():
            try:
                f()
            except Exception as e:
                log.append(told(e))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    def copied(x):
        return copy.deepcopy(x.detach())
""")
OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Rprop", "ASGD")


class Program:
    """The program of a seed: a function of one number."""

    def __init__(self, seed: int, module: Any) -> None:
        writer = graphs.Writer(seed, module)
        rng = writer.rng
        lines = ["s = torch.tensor(number, dtype=torch.float64)"]
        for line in writer.written():
            line = re.sub(r"(reshape\(.*?\))\.clone\(\)", r"\1.mul(number)", line)
            lines.append(line)
            while rng.random() < 0.3:
                known = set(re.findall(r"\br\d+\b", "\n".join(lines))) or {"s"}
                lines.append(rng.choice(EFFECTS).format(rng.choice(sorted(known))))
        self.optimizer = rng.choice(OPTIMIZERS)
        self.numbers = [rng.choice([1.0, 1.0, 0.5, -2.0]) for _ in range(CALLS)]
        self.names = sorted(set(re.findall(r"\br\d+\b", "\n".join(lines))))
        self.lines = lines

    @property
    def source(self) -> str:
        text = ["def program(number):"]
        for line in self.lines:
            text += ["    try:", f"        {line}"]
            if line.startswith("raise"):
                text[-2:] = [f"    {line}"]
                continue
            text += ["    except Exception as e:", "        log.append(told(e))"]
            if "backward(" in line or "grad(" in line:
                text.append("        return locals()")
        return "\n".join([*text, "    return locals()"])


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def bits(tensor: Any) -> Any:
    """Return all that there is to see of a tensor."""
    try:
        values = tensor.detach().cpu().contiguous().numpy().tobytes()
    except Exception as error:
        values = told(error)
    facts = tuple(tensor.shape), str(tensor.dtype), tensor.stride(), tensor._version
    return values, facts, tensor.requires_grad, tensor.is_leaf, str(tensor.grad_fn)[:14]


def with_gradient(tensor: Any) -> Any:
    """Return what there is to see of a tensor and its gradient."""
    try:
        leaf = tensor.is_leaf or tensor.retains_grad
    except RuntimeError as error:  # a view whose base was written where that is forbidden
        return told(error), None
    grad = tensor.grad if leaf else None
    return bits(tensor), grad is not None and bits(grad)


def seen(program: Program, module: Any, compile: Callable[..., Any]) -> list[Any]:
    """Return what a program does, call by call."""
    space = replay.Trace(module).space
    space |= {"np": np, "random": random, "gc": gc, "weakref": weakref, "threading": threading}
    space |= {"warnings": warnings, "copy": __import__("copy"), "told": told, "compile": compile}
    exec(SETUP.format(optimizer=program.optimizer), space)
    exec(program.source, space)
    function = compile(space["program"])
    torch, log, all_seen = space["torch"], space["log"], []
    torch.manual_seed(7)
    random.seed(7)
    threads = torch.get_num_threads()
    try:
        for number in program.numbers:
            text = io.StringIO()
            with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(text):
                warnings.simplefilter("always")
                try:
                    made = function(number)
                except Exception as error:
                    made = {"error": told(error)}
            found = [made.get("error"), log.copy(), text.getvalue()]
            found.append(sorted(str(w.message) for w in warned))
            log.clear()
            for name in program.names:
                tensor = made.get(name)
                if isinstance(tensor, torch.Tensor):
                    found.append((name, *with_gradient(tensor)))
            w = space["w"]
            found += [*with_gradient(w), space["array"].tolist()]
            values = [v for s in space["opt"].state.values() for v in s.values()]
            found.append([bits(v) if isinstance(v, torch.Tensor) else v for v in values])
            found += [space["state"].tolist(), torch.get_rng_state().numpy().tobytes()]
            found.append(random.getstate())
            all_seen.append(found)
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
    return all_seen


def findings(seed: int, module: Any) -> list[Finding]:
    """Return where the compiled program of a seed does something else."""
    program = Program(seed, module)
    plain = seen(program, module, lambda f: f)
    compiled = seen(program, module, module.compile)
    for call, (one, two) in enumerate(zip(plain, compiled)):
        for i, (x, y) in enumerate(zip(one, two)):
            if repr(x) != repr(y):
                detail = f"call {call}, item {i}: {repr(y)[:400]} for {repr(x)[:400]}"
                return [Finding("COMPILED", f"{detail} | {'; '.join(program.lines)}")]
        if len(one) != len(two):
            return [Finding("COMPILED", f"call {call}: {len(two)} for {len(one)} items")]
    return []
