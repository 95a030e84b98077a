"""PyTorch's older place of `torch.hub.load_state_dict_from_url`, and its progress bar."""

from __future__ import annotations

from ..hub import load_state_dict_from_url as load_url
from ..hub import tqdm

__all__ = ["load_url", "tqdm"]
