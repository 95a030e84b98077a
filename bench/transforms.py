"""Time PyTorch's documented uses of `torch.func` here and in PyTorch, and write their page.

``python bench/transforms.py`` needs a Python with PyTorch in `TORCH_PYTHON` (`beside.py`).
"""

import argparse
from collections.abc import Callable
from types import ModuleType
from typing import Any

from beside import PAGES, Time, measure, raised, ratio, said, serve, shown


def cnn(t: ModuleType) -> Any:
    """Return a small network of images."""
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def mlp(t: ModuleType, inputs: int = 256, outputs: int = 10) -> Any:
    """Return a network of three layers."""
    nn = t.nn
    return nn.Sequential(
        nn.Linear(inputs, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, outputs)
    )


def per_sample(t: ModuleType, net: Any, x: Any, y: Any) -> Callable[[], Any]:
    """Return the gradients of a loss for each sample."""
    func, loss = t.func, t.nn.functional.cross_entropy
    state = {k: v.detach() for k, v in net.named_parameters()}

    def one(state: Any, x: Any, y: Any) -> Any:
        out = func.functional_call(net, state, (x[None],))
        return loss(out.reshape(-1, out.shape[-1]), y.reshape(-1))

    each = t.vmap(func.grad(one), in_dims=(None, 0, 0))
    return lambda: each(state, x, y)


class Uses:
    """The uses, each a function that returns a call without arguments."""

    def __init__(self, t: ModuleType) -> None:
        self.t = t

    def gradients_of_each_sample_cnn(self) -> Any:
        """Gradients for each of 64 images."""
        t = self.t
        return per_sample(t, cnn(t), t.randn(64, 1, 28, 28), t.randint(0, 10, (64,)))

    def gradients_of_each_sample_mlp(self) -> Any:
        """Gradients for each of 256 rows."""
        t = self.t
        return per_sample(t, mlp(t), t.randn(256, 256), t.randint(0, 10, (256,)))

    def gradients_of_each_sample_transformer(self) -> Any:
        """Gradients for each of 32 texts."""
        t, nn = self.t, self.t.nn
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        net = nn.Sequential(nn.Embedding(100, 64), layer, nn.Linear(64, 100))
        return per_sample(t, net, t.randint(0, 100, (32, 32)), t.randint(0, 100, (32, 32)))

    def ensemble_of_10_mlps(self) -> Any:
        """Outputs of ten networks for one batch of 256."""
        t, func = self.t, self.t.func
        nets = [mlp(t) for _ in range(10)]
        state, buffers = func.stack_module_state(nets)
        state = {k: v.detach() for k, v in state.items()}
        x = t.randn(256, 256)
        run = t.vmap(
            lambda p, b, x: func.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None)
        )
        return lambda: run(state, buffers, x)

    def jacobian_in_reverse(self) -> Any:
        """The Jacobian of 64 outputs by `jacrev`."""
        t = self.t
        net, x = mlp(t, 256, 64), t.randn(256)
        each = t.func.jacrev(net)
        return lambda: each(x)

    def jacobian_forward(self) -> Any:
        """The Jacobian of 256 outputs with respect to 64 inputs by `jacfwd`."""
        t = self.t
        net, x = mlp(t, 64, 256), t.randn(64)
        each = t.func.jacfwd(net)
        return lambda: each(x)

    def jacobians_of_a_batch(self) -> Any:
        """Jacobians for each of 64 rows by `vmap(jacrev)`."""
        t = self.t
        net, x = mlp(t, 64, 16), t.randn(64, 64)
        each = t.vmap(t.func.jacrev(net))
        return lambda: each(x)

    def hessian(self) -> Any:
        """The Hessian of a sum of 64 inputs."""
        t = self.t
        net, x = mlp(t, 64, 8), t.randn(64)
        each = t.func.hessian(lambda x: net(x).sum())
        return lambda: each(x)

    def hessian_vector_product(self) -> Any:
        """Forward over reverse for a batch of 256."""
        t, func = self.t, self.t.func
        net, x = mlp(t), t.randn(256, 256)
        v = t.randn(256, 256)
        gradient = func.grad(lambda x: net(x).square().sum())
        return lambda: func.jvp(gradient, (x,), (v,))[1]

    def tangent_kernel(self) -> Any:
        """The neural tangent kernel of 32 rows with 8 others, by contractions of Jacobians."""
        t, func = self.t, self.t.func
        net = mlp(t, 32, 4)
        state = {k: v.detach() for k, v in net.named_parameters()}
        a, b = t.randn(32, 32), t.randn(8, 32)
        rows = t.vmap(
            func.jacrev(lambda s, x: func.functional_call(net, s, (x,))), in_dims=(None, 0)
        )

        def kernel() -> Any:
            left, right = rows(state, a), rows(state, b)
            parts = [
                t.einsum("Naf,Maf->NMa", left[k].flatten(2), right[k].flatten(2)) for k in state
            ]
            return sum(parts)

        return kernel


NAMES = [name for name in vars(Uses) if not name.startswith("_")]


def made(t: ModuleType, use: str, way: str) -> Callable[[], object]:
    """Return the call of a use, compiled where the way is `compile`."""
    call = getattr(Uses(t), use)()
    return t.compile(call) if way == "compile" else call


def page(found: dict[str, list[Time]]) -> str:
    """Return the page of figures."""
    lines = [
        "# Uses of `torch.func`", "", "`python bench/transforms.py --compiled` writes this page.",
        "", said(), "",
        "| use | what | ours | PyTorch | torch.compile | ours over the best of PyTorch's |",
        "|---|---|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row, times in found.items():
        what = str(getattr(Uses, row).__doc__).rstrip(".")
        cells = [row.replace("_", " "), what, *map(shown, times), *[""] * (3 - len(times))]
        cells.append(ratio(times[:1], times[1:]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *raised(found)]) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compiled", action="store_true", help="torch.compile too: minutes a row")
    parser.add_argument("-k", default="", help="only uses whose name has this")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, made)
        return
    ways = ("eager", "compile") if options.compiled else ("eager",)
    rows = [n for n in NAMES if options.k in n]
    found = measure(__file__, rows, ("eager",), ways, options.rounds)
    text = page(found)
    print(text)
    if options.compiled and not options.k:
        (PAGES / "transforms.md").write_text(text)


if __name__ == "__main__":
    main()
