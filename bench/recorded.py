"""Time whole steps as they are, recorded and compiled, here and in PyTorch, and write their page.

``python bench/recorded.py`` needs a Python with PyTorch in `TORCH_PYTHON` (`beside.py`); its
compiler needs a C++ compiler.
"""

import argparse
from collections.abc import Callable
from types import ModuleType

import models
import steps
from beside import PAGES, Time, measure, raised, ratio, said, serve, shown

Step = Callable[[], object]

STEPS: dict[str, tuple[str, Callable[[ModuleType], Step]]] = {
    "gpt": (
        "A GPT of 5.3 million parameters, 4 texts of 64, AdamW",
        lambda t: models.gpt(t, batch=4, length=64),
    ),
    "resnet": ("ResNet-18 of half the width, 16 images 32x32, SGD", steps.resnet),
    "unet": ("A diffusion UNet with group norm, 4 images 32x32, AdamW", steps.unet),
    "mlp": ("Residual layers with layer norm, GELU and dropout, batch 64, Adam", steps.mlp),
    "residual": ("A residual block with batch norm, 32x64x28x28, SGD", models.residual),
    "decoding": ("64 tokens one by one, 4 layers of width 128, without gradients", steps.decoding),
    "decoding_narrow": (
        "64 tokens one by one, 4 layers of width 64, without gradients",
        lambda t: steps.Decoding(t, width=64),
    ),
}


def made(t: ModuleType, row: str, way: str) -> Step:
    """Return a step, run in one way: `eager`, `graph` (ours alone) or `compile`."""
    step = STEPS[row][1](t)
    wrap = {"eager": lambda f: f, "graph": getattr(t, "graph", None), "compile": t.compile}[way]
    with_step = getattr(step, "with_step", None)
    return with_step(wrap) if with_step else wrap(step)


def page(found: dict[str, list[Time]]) -> str:
    """Return the page of figures."""
    lines = [
        "# Whole steps, recorded", "", "`python bench/recorded.py` writes this page.",
        "", said(), "",
        "| step | what | ours | `torch.graph` | `compile` | PyTorch | its `compile` "
        "| best of ours over best of PyTorch's |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for row, times in found.items():
        cells = [row.replace("_", " "), STEPS[row][0], *map(shown, times)]
        lines.append(f"| {' | '.join([*cells, ratio(times[:3], times[3:])])} |")
    return "\n".join([*lines, *raised(found)]) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("-k", default="", help="only steps whose name has this")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, made)
        return
    rows = [name for name in STEPS if options.k in name]
    ours, theirs = ("eager", "graph", "compile"), ("eager", "compile")
    text = page(measure(__file__, rows, ours, theirs, options.rounds))
    print(text)
    if not options.k:
        (PAGES / "recorded.md").write_text(text)


if __name__ == "__main__":
    main()
