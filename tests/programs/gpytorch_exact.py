"""An exact Gaussian process fitted to a sine, and its predictions."""

import math

import gpytorch
import torch
from report import finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.linspace(0, 1, 40, device=device)
y = torch.sin(x * (2 * math.pi)) + torch.randn(40).to(device) * 0.2


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
model = Model(x, y, likelihood).to(device)
likelihood.train()
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = -evidence(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
report("lengthscale", model.kernel.base_kernel.lengthscale)
report("noise", likelihood.noise)
model.eval()
likelihood.eval()
with torch.no_grad():
    prediction = likelihood(model(torch.linspace(0, 1, 11, device=device)))
    report("mean", prediction.mean)
    report("variance", prediction.variance)
    report("lower", prediction.confidence_region()[0])
finish()
