"""Stochastic variational inference, and sampling by NUTS, in Pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.optim import Adam
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
pyro.set_rng_seed(0)
x = torch.randn(40, 3).to(device)
y = x @ torch.tensor([1.0, -2.0, 0.5], device=device) + 0.3 + 0.1 * torch.randn(40).to(device)


def model(x, y=None):
    weight = pyro.sample("weight", dist.Normal(x.new_zeros(3), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(x.new_zeros(()), 1.0))
    sigma = pyro.sample("sigma", dist.Gamma(x.new_tensor(2.0), 4.0))
    with pyro.plate("rows", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, sigma), obs=y)


guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.02}), Trace_ELBO())
report("losses", [svi.step(x, y) for _ in range(40)])
for name, value in pyro.get_param_store().items():
    report(name, value)
report("median", guide.median()["weight"])
samples = Predictive(model, guide=guide, num_samples=5)(x[:2])
report("predicted", samples["y"])
dirichlet = dist.Dirichlet(torch.tensor([1.0, 2.0, 3.0], device=device))
report("dirichlet", dirichlet.sample((3,)))
report("gamma", dist.Gamma(torch.tensor(0.7, device=device), 1.0).sample((5,)))

pyro.set_rng_seed(1)
sampler = MCMC(NUTS(model, max_tree_depth=3), num_samples=5, warmup_steps=5, disable_progbar=True)
sampler.run(x, y)
report("nuts", sampler.get_samples()["weight"][:2])
finish()
