"""Stochastic differential equations: solvers, Brownian motions, adjoints and a latent process."""

import torch
import torchsde
from report import draw_on_the_cpu, finish, report

torch.set_default_dtype(torch.float64)
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()


class Diagonal(torch.nn.Module):
    """A process whose drift is a network and whose noise is its own in each coordinate."""

    noise_type = "diagonal"

    def __init__(self, sde_type):
        super().__init__()
        self.sde_type = sde_type
        self.drift = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.Softplus(), torch.nn.Linear(8, 3)
        )
        self.spread = torch.nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))

    def f(self, t, y):
        return self.drift(y) + t

    def g(self, t, y):
        return self.spread * (1 + y.cos())

    def h(self, t, y):
        return -y


class General(torch.nn.Module):
    """A process whose noise is a matrix of the state."""

    noise_type = "general"
    sde_type = "stratonovich"

    def __init__(self):
        super().__init__()
        self.matrix = torch.nn.Linear(3, 6)

    def f(self, t, y):
        return y.sin() - y

    def g(self, t, y):
        return self.matrix(y).view(-1, 3, 2).tanh()


times = torch.linspace(0, 1, 5, device=device)
for sde_type, method in (
    ("ito", "euler"),
    ("ito", "milstein"),
    ("ito", "srk"),
    ("stratonovich", "midpoint"),
    ("stratonovich", "heun"),
    ("stratonovich", "euler_heun"),
    ("stratonovich", "reversible_heun"),
):
    torch.manual_seed(0)
    sde = Diagonal(sde_type).to(device)
    y0 = torch.full((4, 3), 0.1, device=device, requires_grad=True)
    motion = torchsde.BrownianInterval(
        0.0, 1.0, (4, 3), device=device, entropy=7, levy_area_approximation="space-time"
    )
    y = torchsde.sdeint(sde, y0, times, bm=motion, method=method, dt=0.05)
    report(f"{method}: path", y)
    y[-1].square().sum().backward()
    report(f"{method}: gradient of the start", y0.grad)
    report(f"{method}: gradient of the spread", sde.spread.grad)

torch.manual_seed(0)
sde, y0 = General().to(device), torch.full((4, 3), 0.1, device=device, requires_grad=True)
motion = torchsde.BrownianInterval(0.0, 1.0, size=(4, 2), device=device, entropy=3)
y = torchsde.sdeint_adjoint(sde, y0, times, bm=motion, dt=0.1, method="midpoint")
y[-1].sum().backward()
report("adjoint: path", y)
report("adjoint: gradient of the start", y0.grad)
report("adjoint: gradient of the matrix", sde.matrix.weight.grad)

torch.manual_seed(0)
sde = Diagonal("ito").to(device)
motion = torchsde.BrownianInterval(0.0, 1.0, size=(4, 3), device=device, entropy=5)
y = torchsde.sdeint(
    sde,
    torch.ones(4, 3, device=device),
    times,
    bm=motion,
    method="euler",
    dt=0.1,
    adaptive=True,
    rtol=1e-2,
)
report("adaptive: path", y)

optimizer, losses = torch.optim.Adam(sde.parameters(), lr=1e-2), []
for step in range(4):
    motion = torchsde.BrownianInterval(0.0, 1.0, size=(4, 4), device=device, entropy=step)
    y, log_ratio = torchsde.sdeint_adjoint(
        sde,
        torch.ones(4, 3, device=device),
        times,
        bm=motion,
        dt=0.1,
        method="euler",
        logqp=True,
        adjoint_params=tuple(sde.parameters()),
    )
    loss = (y[-1] - 2).square().mean() + 0.1 * log_ratio.sum(0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("latent: losses", losses)

tree = torchsde.BrownianTree(t0=0.0, w0=torch.zeros(2, 3, device=device), entropy=11, tol=1e-3)
report("tree", torch.stack([tree(0.25), tree(0.7), tree(0.2, 0.9)]))
path = torchsde.BrownianPath(t0=0.0, w0=torch.zeros(2, 3, device=device))
report("path", [*path(0.5).shape])
finish()
