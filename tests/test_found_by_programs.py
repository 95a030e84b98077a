"""Where programs written for PyTorch went other ways here: PyTorch's answers, or closed forms."""

from __future__ import annotations

import subprocess
import sys

STEP = """
import torch
import torch.nn.functional as F

net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.AdamW(net.parameters())

@torch.compile(fullgraph=True)
def step(x, y):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

for _ in range(5):
    step(torch.randn(4, 8), torch.tensor([0, 1, 2, 3]))
print(len(step.programs))
"""


def test_compiled_step_is_recorded_in_a_script_that_imports_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytensorlib", "-c", STEP],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
