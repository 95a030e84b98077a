"""Normalizing flows of normflows: trained on two moons and by a target's density."""

import normflows as nf
import numpy as np
import torch
from report import draw_on_the_cpu, finish, report, report_model

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
torch.manual_seed(0)
np.random.seed(0)  # noqa: NPY002  (masks and the noise of a target are drawn from it)


def train(name, model, value, steps=8):
    """Take steps of Adam and report the losses and the weights."""
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = value()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)


target = nf.distributions.TwoMoons().to(device)
with torch.no_grad():
    x = target.sample(64)
report("moons", x)
report("their density", target.log_prob(x[:8]))

torch.manual_seed(1)
steps = []
for i in range(4):
    mask = torch.tensor([1.0, 0.0] if i % 2 else [0.0, 1.0])
    s = nf.nets.MLP([2, 8, 8, 2], init_zeros=True)
    t = nf.nets.MLP([2, 8, 8, 2], init_zeros=True)
    steps += [nf.flows.MaskedAffineFlow(mask, t, s), nf.flows.ActNorm(2)]
# Networks that start at zero have gradients that are what was rounded: doubles.
model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), steps, target).double()
train("RealNVP", model, lambda: model.forward_kld(x.double()))
report_model("RealNVP", model)
with torch.no_grad():
    report("RealNVP: density", model.log_prob(x[:8].double()))
    sample, density = model.sample(4)
    report("RealNVP: samples", sample)
    report("RealNVP: back", model.inverse(model.forward(x[:4].double())))

torch.manual_seed(2)
steps = []
for _ in range(2):
    steps += [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8), nf.flows.LULinearPermute(2)]
model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2, trainable=False), steps)
train("spline", model, lambda: model.forward_kld(x))
with torch.no_grad():
    report("spline: density", model.log_prob(x[:8]))
    report("spline: samples", model.sample(4)[0])

torch.manual_seed(3)
steps = [nf.flows.CoupledRationalQuadraticSpline(2, 1, 8), nf.flows.Permute(2, mode="swap")]
steps += [nf.flows.CoupledRationalQuadraticSpline(2, 1, 8)]
model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), steps, target)
train("by density", model, lambda: model.reverse_kld(32))
train("alpha", model, lambda: model.reverse_alpha_div(32, dreg=True, alpha=0.5), 4)

torch.manual_seed(4)
steps = [nf.flows.Planar((2,)) for _ in range(2)] + [nf.flows.Radial((2,)) for _ in range(2)]
model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), steps, target)
train("planar", model, lambda: model.reverse_kld(32))

torch.manual_seed(5)
steps = []
for _ in range(2):
    net = nf.nets.LipschitzMLP([2, 8, 8, 2], init_zeros=True, lipschitz_const=0.9)
    steps += [nf.flows.Residual(net, reduce_memory=True), nf.flows.ActNorm(2)]
model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2, trainable=False), steps)
train("residual", model, lambda: model.forward_kld(x), 3)
nf.utils.update_lipschitz(model, 5)
report_model("residual", model)

torch.manual_seed(6)
base, merges, flows = [], [], []
for i in range(2):
    blocks = [
        nf.flows.GlowBlock(3 * 2 ** (3 - i), 8, split_mode="channel", scale=True) for _ in range(2)
    ]
    flows.append([*blocks, nf.flows.Squeeze()])
    if i:
        merges.append(nf.flows.Merge())
        shape = (3 * 2, 4, 4)
    else:
        shape = (3 * 8, 2, 2)
    base.append(nf.distributions.GlowBase(shape, num_classes=3))
model = nf.MultiscaleFlow(base, flows, merges).double()
image = torch.rand(4, 3, 8, 8).double().to(device)
label = torch.tensor([0, 1, 2, 0], device=device)
train("Glow", model, lambda: model.forward_kld(image, label), 4)
with torch.no_grad():
    report("Glow: density", model.log_prob(image, label))

torch.manual_seed(7)
mixture = nf.distributions.GaussianMixture(3, 2).to(device)
report("mixture", mixture.log_prob(x[:8]))
report("rings", nf.distributions.CircularGaussianMixture(4).to(device).log_prob(x[:8]))
finish()
