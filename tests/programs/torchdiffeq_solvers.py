"""A neural differential equation: every solver, and training through the adjoint."""

import torch
from report import finish, report, report_model
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


field = Field().double().to(device)
y0 = torch.tensor([[2.0, 0.0]], dtype=torch.float64, device=device)
t = torch.linspace(0, 1, 6, dtype=torch.float64, device=device)
for method in ("dopri5", "dopri8", "bosh3", "adaptive_heun", "euler", "midpoint", "rk4"):
    report(method, odeint(field, y0, t, method=method))

truth = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=torch.float64, device=device)
with torch.no_grad():
    path = odeint(lambda t, y: y**3 @ truth, y0, t)
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
losses = []
for _ in range(10):
    loss = (odeint_adjoint(field, y0, t) - path).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
report_model("field", field)
finish()
