"""Libraries above torch: how to install them without PyTorch, which their metadata names."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

__all__ = ["install", "requires_torch"]

# What to install without its dependencies, and what it needs besides, by the module's name.
KNOWN = {
    "accelerate": ("accelerate", "huggingface-hub packaging psutil pyyaml safetensors"),
    "captum": ("captum", "matplotlib packaging tqdm"),
    "ignite": ("pytorch-ignite", "packaging"),
    "kornia": ("kornia", "kornia-rs"),
    "lightning": (
        "lightning pytorch-lightning torchmetrics",
        "aiohttp fsspec lightning-utilities packaging pyyaml tqdm typing-extensions",
    ),
    "opacus": ("opacus", "scipy opt-einsum"),
    "pyro": ("pyro-ppl", "opt-einsum pyro-api tqdm"),
    "pytorch_lightning": (
        "pytorch-lightning torchmetrics",
        "aiohttp fsspec lightning-utilities packaging pyyaml tqdm typing-extensions",
    ),
    "pytorch_metric_learning": ("pytorch-metric-learning", "scikit-learn tqdm"),
    "timm": ("timm torchvision", "huggingface-hub pillow pyyaml safetensors"),
    "torchaudio": ("torchaudio", ""),
    "torchdiffeq": ("torchdiffeq", "scipy"),
    "torchmetrics": ("torchmetrics", "lightning-utilities packaging"),
    "torchvision": ("torchvision", "pillow"),
}


def install(module: str) -> str | None:
    """Return the commands that install a library without PyTorch, or None for one unknown.

    Parameters
    ----------
    module : str
        What a program imports; of a dotted name the first part counts.

    Returns
    -------
    str or None
        For a shell.

    Examples
    --------
    >>> from pytensorlib._absent.above import install
    >>> install("torchvision.transforms")
    'pip install --no-deps torchvision && pip install pillow'
    """
    known = KNOWN.get(module.partition(".")[0])
    if known is None:
        return None
    alone, needs = known
    return f"pip install --no-deps {alone}" + (f" && pip install {needs}" if needs else "")


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def requires_torch(module: str) -> str | None:
    """Return the installed distribution of a module whose metadata requires torch, or None.

    Parameters
    ----------
    module : str
        What a program imports.

    Returns
    -------
    str or None
        The distribution's name.

    Examples
    --------
    >>> from pytensorlib._absent.above import requires_torch
    >>> requires_torch("numpy") is None
    True
    """
    for name in _distributions().get(module.partition(".")[0], ()):
        for need in metadata.requires(name) or ():
            told = re.match(r"[\w.-]+", need)
            if told is not None and told[0].lower() == "torch" and "extra ==" not in need:
                return name
    return None
