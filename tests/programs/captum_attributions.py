"""Attributions of a small convolutional network, its layers and neurons, and a text classifier."""

import numpy as np
import torch
from captum import attr
from captum.metrics import infidelity, sensitivity_max
from report import draw_on_the_cpu, finish, report
from torch import nn


class Net(nn.Module):
    """Two convolutions and a linear layer, each rectifier a module of its own."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.relu = nn.ReLU()
        self.second = nn.Conv2d(4, 6, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.linear = nn.Linear(6 * 4 * 4, 3)

    def forward(self, x):
        x = self.relu2(self.second(self.relu(self.first(x))))
        return self.linear(self.pool(x).flatten(1))


device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
torch.manual_seed(0)
net = Net().double().eval().to(device)
x = torch.rand(3, 1, 8, 8).double().to(device)
base, target = torch.zeros_like(x), torch.tensor([0, 2, 1], device=device)
ways = {
    attr.Saliency: {},
    attr.InputXGradient: {},
    attr.IntegratedGradients: {"baselines": base, "n_steps": 20},
    attr.DeepLift: {"baselines": base},
    attr.GuidedBackprop: {},
    attr.Deconvolution: {},
    attr.LRP: {},
}
for way, options in ways.items():
    report(way.__name__, way(net).attribute(x, target=target, **options))
_, delta = attr.IntegratedGradients(net).attribute(
    x, base, target=target, method="riemann_trapezoid", return_convergence_delta=True
)
report("IntegratedGradients: delta", delta)
torch.manual_seed(1)
several = torch.rand(5, 1, 8, 8).double().to(device)
report("DeepLiftShap", attr.DeepLiftShap(net).attribute(x, several, target=target))
torch.manual_seed(1)
noisy = attr.NoiseTunnel(attr.IntegratedGradients(net))
report("NoiseTunnel", noisy.attribute(x, nt_type="smoothgrad_sq", nt_samples=4, target=target))
report("FeatureAblation", attr.FeatureAblation(net).attribute(x, base, target=target))
report(
    "Occlusion",
    attr.Occlusion(net).attribute(x, (1, 3, 3), strides=(1, 2, 2), target=target, baselines=0),
)
quarters = (
    torch.arange(16, device=device).view(1, 1, 4, 4).repeat_interleave(2, 2).repeat_interleave(2, 3)
)
torch.manual_seed(1)
shapley = attr.ShapleyValueSampling(net)
report("Shapley", shapley.attribute(x, base, target, feature_mask=quarters, n_samples=3))
torch.manual_seed(1)
report(
    "FeaturePermutation", attr.FeaturePermutation(net).attribute(x, target, feature_mask=quarters)
)

report("LayerGradCam", attr.LayerGradCam(net, net.second).attribute(x, target))
upsampled = attr.LayerAttribution.interpolate(
    attr.LayerGradCam(net, net.second).attribute(x, target), (16, 16), "bilinear"
)
report("upsampled", upsampled)
report(
    "LayerConductance", attr.LayerConductance(net, net.first).attribute(x, base, target, n_steps=10)
)
report("LayerActivation", attr.LayerActivation(net, net.pool).attribute(x))
report("LayerDeepLift", attr.LayerDeepLift(net, net.first).attribute(x, base, target))
report(
    "InternalInfluence",
    attr.InternalInfluence(net, net.first).attribute(x, base, target, n_steps=10),
)
report("LayerLRP", attr.LayerLRP(net, net.second).attribute(x, target))
report("GuidedGradCam", attr.GuidedGradCam(net, net.second).attribute(x, target))
report("NeuronGradient", attr.NeuronGradient(net, net.second).attribute(x, (2, 3, 3)))
report(
    "NeuronConductance",
    attr.NeuronConductance(net, net.second).attribute(x, (1, 2, 2), base, target, n_steps=10),
)
np.random.seed(1)  # noqa: NPY002  (GradientShap draws from it)
torch.manual_seed(1)
report("GradientShap", attr.GradientShap(net).attribute(x, several, target=target))
report(
    "NeuronGradientShap", attr.NeuronGradientShap(net, net.second).attribute(x, (1, 2, 2), several)
)

torch.manual_seed(2)
words = (
    nn.Sequential(nn.Embedding(20, 8), nn.Flatten(), nn.Linear(40, 2)).double().eval().to(device)
)
tokens = torch.randint(1, 20, (2, 5)).to(device)
way = attr.LayerIntegratedGradients(words, words[0])
found = way.attribute(tokens, torch.zeros_like(tokens), target=1, n_steps=15)
report("of words", found.sum(-1))
layer = attr.configure_interpretable_embedding_layer(words, "0")
embedded = layer.indices_to_embeddings(tokens)
found = attr.IntegratedGradients(words).attribute(
    embedded, torch.zeros_like(embedded), target=1, n_steps=15
)
report("of embeddings", found.sum(-1))
attr.remove_interpretable_embedding_layer(words, layer)


def perturb(inputs):
    """Return noise and the inputs without it."""
    noise = 0.01 * torch.randn(inputs.shape, dtype=torch.float64).to(device)
    return noise, inputs - noise


torch.manual_seed(3)
found = attr.Saliency(net).attribute(x, target=target, abs=False)
report("infidelity", infidelity(net, perturb, x, found, target=target, n_perturb_samples=4) * 1e4)
torch.manual_seed(3)
report(
    "sensitivity",
    sensitivity_max(attr.Saliency(net).attribute, x, target=target, n_perturb_samples=3),
)
finish()
