"""Every optimizer of torch_optimizer on Rosenbrock's function and on a small network."""

import torch
import torch_optimizer as optim
from report import draw_on_the_cpu, finish, report

options = {
    "A2GradExp": {},
    "A2GradInc": {},
    "A2GradUni": {},
    "AccSGD": {},
    "AdaBelief": {"weight_decay": 1e-2},
    "AdaBound": {"amsbound": True},
    "AdaMod": {},
    "Adafactor": {"lr": None},
    "Adahessian": {"seed": 3},
    "AdamP": {"weight_decay": 1e-2},
    "AggMo": {},
    "Apollo": {},
    "DiffGrad": {},
    "LARS": {"momentum": 0.9, "weight_decay": 1e-3},
    "Lamb": {"weight_decay": 1e-2},
    "MADGRAD": {"momentum": 0.9},
    "NovoGrad": {"grad_averaging": True},
    "PID": {"momentum": 0.5},
    "QHAdam": {"decouple_weight_decay": True, "weight_decay": 1e-2},
    "QHM": {"momentum": 0.9},
    "RAdam": {},
    "Ranger": {"k": 3},
    "RangerQH": {"k": 3},
    "RangerVA": {"k": 3},
    "SGDP": {"momentum": 0.9, "weight_decay": 1e-3},
    "SGDW": {"momentum": 0.9, "weight_decay": 1e-3},
    "SWATS": {"nesterov": True},
    "Shampoo": {"momentum": 0.5},
    "Yogi": {},
}
RATE = {"lr": 1e-2}
SECOND = {"Adahessian"}
# Shampoo takes roots of matrices that lack rank: doubles.
torch.set_default_dtype(torch.float64)
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
x = torch.randn(16, 5, generator=torch.Generator().manual_seed(2)).to(device)
y = x[:, :3].square() - x[:, 2:]


def steps(name, optimizer, value, count):
    """Return the values before each of some steps."""
    values = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = value()
        loss.backward(create_graph=name in SECOND)
        optimizer.step()
        values.append(loss.item())
    return values


for name, extra in options.items():
    if name.startswith("A2Grad"):
        settings = {"lips": 10.0, "beta": 10.0}
    else:
        settings = {**RATE, **extra}
    make = getattr(optim, name)
    point = torch.tensor([-1.2, 0.9], dtype=torch.float64, device=device, requires_grad=True)
    if name not in ("Shampoo", "NovoGrad", "LARS"):
        optimizer = make([point], **settings)
        report(
            f"{name}: Rosenbrock",
            steps(
                name,
                optimizer,
                lambda: (1 - point[0]) ** 2 + 5 * (point[1] - point[0] ** 2) ** 2,
                8,
            ),
        )
        report(f"{name}: point", point)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    model.to(device)
    optimizer = make(model.parameters(), **settings)
    losses = steps(name, optimizer, lambda: (model(x) - y).square().mean(), 8)
    report(f"{name}: losses", losses)
    report(f"{name}: weight", model[0].weight)

torch.manual_seed(0)
model = torch.nn.Linear(5, 3).to(device)
inner = optim.Yogi(model.parameters(), lr=1e-2)
optimizer = optim.Lookahead(inner, k=3, alpha=0.5)
losses = steps("Lookahead", optimizer, lambda: (model(x) - y).square().mean(), 8)
report("Lookahead: losses", losses)
report("Lookahead: weight", model.weight)
report("by name", [optim.get("radam") is optim.RAdam])
finish()
