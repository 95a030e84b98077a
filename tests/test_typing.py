"""A user's training script is clean under mypy with the package's own annotations."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.body(x), dim=-1)


data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    loss = nn.functional.nll_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    best: int = int(net(data.tensors[0]).argmax(dim=1).sum().item())
size: torch.Size = data.tensors[0].shape
print(size[0], best, (loss * 2 + 1).item())
"""


def test_typical_script_passes_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(script)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
