"""Random programs that make graphs: operators, views, writes in place, hooks, backward twice.

A program is lines of Python over tensors r0, r1, ...; each line is written with PyTorch at hand,
which says what shapes there are. After `PRELUDE` they are a script that either library runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from random import Random
from typing import Any

from . import replay

PRELUDE = textwrap.dedent("""
    log = []

    def note(g):
        log.append(("grad", list(g.shape), float(g.sum())))

    def double(g):
        note(g)
        return g * 2

    def write(g):
        return g.clone().mul_(3)

    def seen(grad_inputs, grad_outputs):
        log.append(("node", len(grad_inputs), [o is None for o in grad_outputs]))

    def before(grad_outputs):
        log.append(("before", len(grad_outputs)))

    def twice(grad_outputs):
        return tuple(None if g is None else g * 2 for g in grad_outputs)

    def after(leaf):
        log.append(("after", float(leaf.grad.sum())))

    def pack(x):
        return x.clone() if x.dim() > 1 else x

    def saved():
        return torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return (g * y).sum_to_size(x.shape), (g * x).sum_to_size(y.shape)

    class Negated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.neg_()

        @staticmethod
        def backward(ctx, g):
            return -g
""")

UNARY = (
    *("{0}.sin()", "{0}.cos()", "{0}.tanh()", "{0}.sigmoid()", "{0}.relu()", "{0}.atan()"),
    *("{0}.abs()", "{0}.neg()", "{0} * 0.5", "{0} + 1", "1 - {0}", "{0} ** 2", "{0}.clone()"),
    *("F.gelu({0})", "F.softplus({0})", "F.silu({0})", "{0}.clamp(-1, 1)", "{0}.tanh().exp()"),
    *("(1 + {0} * {0}).sqrt()", "(1 + {0} * {0}).log()", "1 / (2 + {0}.cos())", "{0}.contiguous()"),
    *("F.leaky_relu({0}, 0.1)", "F.elu({0})", "{0}.square()", "F.hardtanh({0})"),
    *("torch.where({0} > 0, {0}, {0} * 2)", "torch.zeros_like({0}) + {0}", "F.dropout({0}, 0.0)"),
)
REDUCING = (
    *("{0}.sum()", "{0}.mean()", "{0}.sum({d}, keepdim=True)", "{0}.mean({d})", "{0}.amax({d})"),
    *("{0}.softmax({d})", "{0}.log_softmax({d})", "{0}.cumsum({d})", "{0}.logsumexp({d})"),
    *("{0}.norm()", "{0}.max({d})[0]", "{0}.sort({d})[0]", "{0}.prod({d})", "{0}.flip({d})"),
    *("{0}.var({d}, correction=0)", "F.layer_norm({0}, {0}.shape[-1:])", "{0}.roll(1, {d})"),
    *("{0}.index_select({d}, torch.tensor([0]))", "F.normalize({0}, dim={d})", "{0}.std()"),
    *("torch.var_mean({0}, {d}, correction=0)[{k2}]", "{0}.cumprod({d})", "{0}.median({d})[0]"),
    *(
        "torch.aminmax({0}, dim={d})[{k2}]",
        "{0}.repeat_interleave(2, {d})",
        "{0}.logcumsumexp({d})",
    ),
)
BINARY = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2 + {1}.sin())", "torch.maximum({0}, {1})"),
    *("torch.atan2({0}, 2 + {1}.cos())", "torch.lerp({0}, {1}, 0.3)", "Product.apply({0}, {1})"),
    *("torch.where({0} > 0, {0}, {1})", "torch.addcmul({0}, {0}, {1}, value=0.5)", "{0} @ {1}.mT"),
    *("torch.hypot({0}, 1 + {1} * {1})", "F.mse_loss({0}, {1})", "F.smooth_l1_loss({0}, {1})"),
    *("torch.stack([{0}, {1}])", "torch.cat([{0}, {1}])", "{0} @ {1}", "F.linear({0}, {1})"),
    *("torch.logaddexp({0}, {1})", "F.cosine_similarity({0}, {1}, dim={d})"),
)
VIEWS = (
    *("{0}.select({d}, {i})", "{0}.narrow({d}, {i}, 1)", "{0}.unsqueeze({d})", "{0}.squeeze()"),
    *("{0}.transpose({d}, 0)", "{0}.flatten()", "{0}.reshape(-1)", "{0}.view(-1)", "{0}[::2]"),
    *("{0}[{i0}]", "{0}[...]", "{0}.unbind({d})[{i}]", "{0}.chunk(2, {d})[0]"),
    *(
        "{0}.diagonal()",
        "{0}.unfold({d}, 1, 1)",
        "{0}.expand(2, *{0}.shape)",
        "{0}.movedim({d}, 0)",
    ),
    *("{0}.view_as({0})", "{0}.split(1, {d})[{i}]", "{0}[:, -1:]", "{0}.swapaxes(0, {d})"),
    *("{0}.as_strided((1,), (1,), 0)", "{0}.tensor_split(2, {d})[1]", "{0}.view({0}.shape)"),
    *(
        "{0}.detach()",
        "{0}.data",
        "{0}[None]",
        "{0}.view(*{0}.shape)",
        "{0}.unsqueeze(0).expand_as({0}[None])",
    ),
)
WRITES = (
    *("{0}.mul_(2)", "{0}.add_({1})", "{0}.mul_({1})", "{0}.sub_({1}, alpha=0.5)", "{0}.zero_()"),
    *("{0}.sin_()", "{0}.tanh_()", "{0}.relu_()", "{0}.sigmoid_()", "{0}.copy_({1})", "{0}.neg_()"),
    *("{0}.fill_(0.5)", "{0}.clamp_(-1, 1)", "{0}.masked_fill_({0} > 0, 0.25)", "{0}[{i0}] = 0.5"),
    *("{0}[{i0}] = {1}[{j0}]", "{0}.select({d}, {i}).mul_(2)", "{0}.narrow({d}, {i}, 1).zero_()"),
    *("{0} += {1}", "{0} *= 0.5", "{0}[{0} > 0] = 0.1", "{0}.view(-1).add_(1)", "{0}.exp_()"),
    *("{0}.index_add_({d}, torch.tensor([0]), {0}.narrow({d}, 0, 1).clone())", "{0}.t_()"),
    *("{0}.unsqueeze_(0)", "{0}.squeeze_()", "{0}.detach_()", "{0}.requires_grad_()", "{0}.abs_()"),
    *("{0}.mul_({0})", "{0}.index_fill_({d}, torch.tensor([{i}]), 0.3)", "{0}.transpose_({d}, 0)"),
    *("{0}.t().mul_(2)", "{0}.data.mul_(2)", "{0}.detach().mul_(2)", "Negated.apply({0})"),
    *("F.relu({0}, inplace=True)", "torch.sin({0}, out={0})", "{0}.lerp_({1}, 0.5)"),
    *("{0}.diagonal().fill_(0.2)", "{0}.index_put_((torch.tensor([{i0}]),), {1}[{j0}])"),
)
ACTIONS = (
    *("{0}.retain_grad()", "{0}.register_hook(note)", "{0}.register_hook(double)"),
    *(
        "{0}.register_hook(write)",
        "{0}.grad_fn.register_hook(seen)",
        "{0}.grad_fn.register_prehook(before)",
    ),
    *("{0}.register_hook(double).remove()", "{0}.register_post_accumulate_grad_hook(after)"),
    *("{0}.requires_grad_(False)", "{0}.grad = None", "{0}.grad.zero_()", "{0}.grad.mul_(2)"),
    *("{0}.grad_fn.register_prehook(twice)", "torch.autograd.backward([{0}.sum(), {1}.sum()])"),
)
AROUND = (
    *("with torch.no_grad(): ", "with torch.no_grad(): ", "with torch.enable_grad(): "),
    *("with saved(): ", "with saved(): "),
)
KINDS: tuple[tuple[str, int], ...] = (
    *(("unary", 7), ("reducing", 4), ("binary", 7), ("view", 7), ("write", 6), ("action", 4)),
    *(("grad", 2), ("backward", 2), ("leaf", 1)),
)


class Writer:
    """Writes a program line by line while it runs in one library."""

    def __init__(self, seed: int, module: Any) -> None:
        self.rng = Random(seed)
        self.trace = replay.Trace(module)
        self.lines: list[str] = []
        self.dtype = self.rng.choice(["float64"] * 5 + ["float32"])

    def written(self) -> list[str]:
        """Return the lines of a program."""
        for _ in range(self.rng.choice([1, 2, 3])):
            self.leaf()
        kinds, weights = zip(*KINDS)
        for _ in range(self.rng.choice([4, 8, 14, 22])):
            kind = self.rng.choices(kinds, weights)[0]
            if not getattr(self, kind)():
                return self.lines
        if self.trace.tensors:
            self.backward()
        return self.lines

    def add(self, line: str, around: bool = True) -> bool:
        """Write and run a line. Return whether the program may go on."""
        if around and self.rng.random() < 0.12:
            line = self.rng.choice(AROUND) + line
        self.lines.append(line)
        return self.trace.step(line)

    def name(self) -> str:
        return f"r{len(self.trace.tensors)}"

    def leaf(self) -> bool:
        shape = self.rng.choice(
            [(3,), (2, 3), (3, 3), (2, 3), (1, 3), (), (2, 2, 3), (3, 2), (0, 3)]
        )
        size = 1
        for n in shape:
            size *= n
        values = [round(self.rng.uniform(-2, 2), 3) for _ in range(size)]
        grad = self.rng.random() < 0.8
        # A clone: PyTorch loses gradients of views of a leaf that is a view itself.
        made = f"torch.tensor({values}, dtype=torch.{self.dtype}).reshape({shape}).clone()"
        return self.add(f"{self.name()} = {made}.requires_grad_({grad})", around=False)

    def one(self, fits: Callable[[Any], bool] = lambda t: True) -> str | None:
        """Return a tensor that fits, newer ones more often."""
        names = [n for n, t in self.trace.tensors.items() if fits(t)]
        weights = [1 + i for i in range(len(names))]
        return self.rng.choices(names, weights)[0] if names else None

    def filled(self, template: str) -> str | None:
        """Return a template over tensors that exist, most often ones whose shapes suit."""
        tensors, rng = self.trace.tensors, self.rng
        first = self.one(lambda t: t.is_floating_point() and t.numel() < 200)
        if first is None:
            return None
        x = tensors[first]
        like = self.one(lambda t: broadcasts(t.shape, x.shape)) or first
        second = like if rng.random() < 0.95 else self.one() or first
        d = rng.randrange(x.dim()) if x.dim() else 0
        sizes = [*x.shape, *([] if x.dim() else [1])]
        y = tensors[second]
        places = {
            "d": d,
            "i": rng.randrange(max(sizes[d], 1)),
            "i0": rng.randrange(max(sizes[0], 1)),
            "j0": rng.randrange(max(y.shape[0] if y.dim() else 1, 1)),
            "k2": rng.randrange(2),
        }
        return template.format(first, second, **places)

    def assigned(self, templates: tuple[str, ...]) -> bool:
        expression = self.filled(self.rng.choice(templates))
        return self.leaf() if expression is None else self.add(f"{self.name()} = {expression}")

    def unary(self) -> bool:
        return self.assigned(UNARY)

    def reducing(self) -> bool:
        return self.assigned(REDUCING)

    def binary(self) -> bool:
        return self.assigned(BINARY)

    def view(self) -> bool:
        return self.assigned(VIEWS)

    def write(self) -> bool:
        line = self.filled(self.rng.choice(WRITES))
        return self.leaf() if line is None else self.add(line)

    def action(self) -> bool:
        line = self.filled(self.rng.choice(ACTIONS))
        return self.leaf() if line is None else self.add(line, around=False)

    def backward(self) -> bool:
        y = self.one(lambda t: t.requires_grad)
        if y is None:
            return True
        more = self.rng.choice(["", "", "retain_graph=True", "create_graph=True"])
        leaf = self.one(lambda t: t.requires_grad)
        if self.rng.random() < 0.15:
            more += f"{', ' if more else ''}inputs=[{leaf}]"
        return self.add(f"({y} * {y}.cos().detach()).sum().backward({more})")

    def grad(self) -> bool:
        y, x = (self.one(lambda t: t.requires_grad) for _ in range(2))
        if y is None:
            return True
        more = ", create_graph=True" if self.rng.random() < 0.7 else ""
        more += ", retain_graph=True" if self.rng.random() < 0.3 else ""
        more += ", materialize_grads=True" if self.rng.random() < 0.1 else ", allow_unused=True"
        return self.add(f"{self.name()}, = torch.autograd.grad({y}.sum(), [{x}]{more})")


def broadcasts(one: Any, two: Any) -> bool:
    """Say whether a shape may be put for another in an operation with it."""
    return all(m == 1 or m == n for m, n in zip(reversed(one), reversed(two))) and len(one) <= len(
        two
    )


def program(seed: int, module: Any) -> list[str]:
    """Return the program of a seed."""
    return Writer(seed, module).written()
