"""What type checkers find: each line is wrong, and mypy reports an ignore that is not needed."""

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib import nn

x = torch.ones(2, 3)
torch.zero(3)  # type: ignore[attr-defined]
F.relu7(x)  # type: ignore[attr-defined]
nn.Linear(3, 1)([1.0])  # type: ignore[arg-type]
nn.Linear(3, 1)(x, x)  # type: ignore[call-arg]
nn.Conv2d(3)  # type: ignore[call-arg]
torch.linalg.normal(x)  # type: ignore[attr-defined]
number: str = x.sum().item()  # type: ignore[assignment]
width: int = x  # type: ignore[assignment]
torch.cat(x, x)  # type: ignore[arg-type]
