"""Normalizing flows of nflows: densities, their inverses, samples and training."""

import torch
from nflows import distributions, flows, transforms
from nflows.nn import nets
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
torch.manual_seed(0)
x, context = torch.randn(8, 6).to(device), torch.randn(8, 3).to(device)


def coupled(inputs, outputs):
    """Return the network that gives a coupling its parameters."""
    return nets.ResidualNet(inputs, outputs, hidden_features=12, context_features=3)


half = torch.tensor([1, 0, 1, 0, 1, 0])
kinds = {
    "affine": transforms.AffineCouplingTransform(half, coupled),
    "quadratic": transforms.PiecewiseQuadraticCouplingTransform(half, coupled, tails="linear"),
    "cubic": transforms.PiecewiseCubicCouplingTransform(half, coupled, tails="linear"),
    "rational": transforms.PiecewiseRationalQuadraticCouplingTransform(
        half, coupled, tails="linear", tail_bound=3.0
    ),
    "autoregressive": transforms.MaskedAffineAutoregressiveTransform(6, 12, context_features=3),
    "rational autoregressive": transforms.MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        6, 12, context_features=3, tails="linear", tail_bound=3.0
    ),
    "unconditional": transforms.PiecewiseRationalQuadraticCDF((6,), tails="linear"),
    "LU": transforms.LULinear(6),
    "SVD": transforms.SVDLinear(6, num_householder=2),
    "householder": transforms.HouseholderSequence(6, 3),
    "permutation": transforms.RandomPermutation(6),
    "norm": transforms.ActNorm(6),
    "leaky": transforms.LeakyReLU(),
    "logistic": transforms.Sigmoid(),
}
for name, transform in kinds.items():
    transform.double().to(device)
    if name == "logistic":  # its temperature is no parameter, and stays where it was made
        transform.temperature = transform.temperature.to(device)
    inputs = x.double().requires_grad_()
    y, volume = transform(inputs, context.double())
    report(f"{name}: forward", y)
    report(f"{name}: log volume", volume)
    (y.square().sum() - volume.sum()).backward()
    report(f"{name}: gradient", inputs.grad)
    back, _ = transform.inverse(y.detach(), context.double())
    report(f"{name}: inverse", back)

# Batch norm cancels shifts, whose gradients are then what was rounded: doubles, and not Adam,
# whose steps are as long for small gradients.
torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
layers = []
for _ in range(3):
    layers.append(transforms.ReversePermutation(features=2))
    layers.append(transforms.MaskedAffineAutoregressiveTransform(features=2, hidden_features=8))
    layers.append(transforms.BatchNorm(2))
flow = flows.Flow(transforms.CompositeTransform(layers), distributions.StandardNormal([2]))
flow.to(device)
angle = torch.rand(64) * torch.pi
moons = torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(64, 2)
moons = moons.to(device)
optimizer, losses = torch.optim.SGD(flow.parameters(), lr=0.02, momentum=0.9), []
for _ in range(12):
    loss = -flow.log_prob(inputs=moons).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
flow.eval()
with torch.no_grad():
    torch.manual_seed(3)
    report("samples", flow.sample(5))
    sample, density = flow.sample_and_log_prob(4)
    report("densities", density)
    report("noise", flow.transform_to_noise(moons[:3]))

torch.manual_seed(2)
flow = flows.SimpleRealNVP(6, 12, num_layers=2, num_blocks_per_layer=1)
x, context = x.double(), context.double()
report("RealNVP", flow.to(device).log_prob(x))
flow = flows.MaskedAutoregressiveFlow(6, 12, num_layers=2, num_blocks_per_layer=1)
report("MAF", flow.to(device).log_prob(x))
base = distributions.ConditionalDiagonalNormal([6], context_encoder=torch.nn.Linear(3, 12))
flow = flows.Flow(transforms.LULinear(6), base).to(device)
report("conditional", flow.log_prob(x, context))
report("conditional samples", flow.sample(2, context).detach())
mixture = distributions.MADEMoG(6, 12, context_features=3, num_mixture_components=3)
report("mixture", mixture.to(device).log_prob(x, context))
convolution = transforms.OneByOneConvolution(4).to(device)
y, volume = convolution(torch.randn(2, 4, 3, 3).to(device))
report("convolution", y)
report("its volume", volume)
finish()
