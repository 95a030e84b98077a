"""Helpers of the examples: arguments, progress, checkpoints and pictures."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytensorlib as torch

__all__ = ["Run", "about", "choose_device", "digits", "figure", "parse", "parser", "words"]


def choose_device(name: str) -> Any:
    """Return the device of that name; "auto" takes a GPU where there is one."""
    if name != "auto":
        return torch.device(name)
    return torch.device("wgpu" if torch.wgpu.is_available() else "cpu")


def parser(name: str, text: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser of the arguments that every example has.

    `text` is the docstring of the example: its title and its first paragraph are the help.
    `defaults` are ``steps``, and what ``--small`` makes of it, ``small``.
    """
    found = argparse.ArgumentParser(prog=f"pytensorlib.examples.{name}", description=about(text))
    found.set_defaults(small_steps=defaults["small"])
    found.add_argument("--device", default="cpu", help="cpu (the default), wgpu, wgpu:1, auto")
    found.add_argument("--steps", type=int, default=defaults["steps"], help="default %(default)s")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--small", action="store_true", help="a few seconds, to see that it runs")
    found.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    found.add_argument("--out", type=Path, default=Path(f"{name}-out"), metavar="DIR")
    return found


def about(text: str) -> str:
    """Return the first paragraph below the title of an example's docstring."""
    rest = text.strip().partition("\n")[2].strip("=\n ")
    return re.sub(r"``(.+?)``", r"\1", rest.partition("\n\n")[0].replace("\n", " "))


def words(argv: list[str] | None) -> list[str] | None:
    """Return the arguments to read: a notebook has no command line."""
    return [] if argv is None and "ipykernel" in sys.modules else argv


def parse(found: argparse.ArgumentParser, argv: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments, with the device made and the seed set."""
    args = found.parse_args(words(argv))
    if getattr(args, "small", False):
        args.steps = min(args.steps, args.small_steps)
    if getattr(args, "steps", 1) < 1:
        found.error(f"--steps must be at least 1, got {args.steps}")
    try:
        args.device = choose_device(args.device)
        torch.empty(1, device=args.device)
    except RuntimeError as e:
        found.error(f"--device {args.device}: {e}")
    torch.manual_seed(args.seed)
    return args


class Run:
    """A training run: it counts steps, prints how it goes, and keeps checkpoints.

    Parameters
    ----------
    args : Namespace
        What `parse` returned.
    unit : str
        What a step works through, such as "images".
    each : int
        How many of them.
    **parts
        What has a ``state_dict``: the model, the optimizer. A checkpoint holds them, the losses so
        far and the random numbers' state, so that a run that was stopped goes on as if it had not.
    """

    def __init__(self, args: argparse.Namespace, unit: str, each: int, **parts: Any) -> None:
        self.args, self.unit, self.each, self.parts = args, unit, each, parts
        self.file = args.out / "checkpoint.pt"
        self.losses: list[float] = []
        self.on_gpu = torch.device(args.device).type != "cpu"
        if args.resume:
            self.load()

    def load(self) -> None:
        """Go on from the checkpoint."""
        state = torch.load(self.file)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.losses = state["losses"]
        torch.set_rng_state(state["random"])
        if state["random_gpu"] is not None and self.on_gpu:
            torch.wgpu.set_rng_state(state["random_gpu"], self.args.device)
        print(f"resumed from {self.file} after {len(self.losses)} steps")

    def save(self) -> None:
        """Write the checkpoint; the old one stays until the new one is whole."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state |= {"losses": self.losses, "random": torch.get_rng_state()}
        state["random_gpu"] = torch.wgpu.get_rng_state(self.args.device) if self.on_gpu else None
        torch.save(state, self.file)

    def steps(self) -> Iterator[int]:
        """Yield the number of each step, print ten lines on the way, and save at the end."""
        total, begun = self.args.steps, len(self.losses)
        lines = max(1, total // 10)
        since, before = time.perf_counter(), begun
        for step in range(begun, total):
            yield step
            if (step + 1) % lines == 0 or step + 1 == total:
                now, done = time.perf_counter(), step + 1 - before
                rate = done * self.each / max(now - since, 1e-9)
                loss = sum(self.losses[before:]) / done
                print(f"step {step + 1:5}  loss {loss:9.4f}  {rate:9,.0f} {self.unit}/s")
                since, before = now, step + 1
        self.save()

    def note(self, loss: Any) -> None:
        """Keep the loss of a step."""
        self.losses.append(float(loss))


def figure(args: argparse.Namespace, name: str, panels: int = 1, width: float = 4.0) -> Any:
    """Return a context with a row of axes, which writes a picture at its end.

    Without matplotlib the picture is left out, and the context gives None.
    """
    return _Figure(args.out / name, panels, width)


class _Figure:
    def __init__(self, path: Path, panels: int, width: float) -> None:
        self.path, self.panels, self.width = path, panels, width
        self.figure: Any = None

    def __enter__(self) -> Any:
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            print("no picture: pip install matplotlib")
            return None
        size = (self.width * self.panels, 3.4)
        self.figure, axes = plt.subplots(
            1, self.panels, figsize=size, layout="constrained", squeeze=False
        )
        return axes[0]

    def __exit__(self, kind: Any, *exc: Any) -> None:
        if self.figure is not None and kind is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.figure.savefig(self.path, dpi=110)
            print(f"picture: {self.path}")


def digits() -> tuple[Any, Any, Any, Any]:
    """Return scikit-learn's 1,797 scanned digits: images and labels to learn, and to test.

    Images are (N, 64), between 0 and 1; every fourth is for the test.
    """
    try:
        from sklearn import datasets
    except ImportError as e:
        raise SystemExit(f"{e}. The digits come with it: pip install scikit-learn") from None
    images, labels = datasets.load_digits(return_X_y=True)
    x = torch.from_numpy(images).float() / 16
    y = torch.from_numpy(labels).long()
    test = torch.arange(len(y)) % 4 == 0
    return x[~test], y[~test], x[test], y[test]
