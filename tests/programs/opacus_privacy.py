"""Training under differential privacy: gradients of each sample, clipping, noise, accountants."""

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from report import draw_on_the_cpu, finish, report, report_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
x, y = torch.randn(64, 1, 8, 8, generator=g), torch.randint(0, 3, (64,), generator=g)


def net():
    """Return a small network for images."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 3),
    ).to(device)


loss = nn.CrossEntropyLoss()
for mode, clipping, poisson in (
    ("hooks", "flat", True),
    ("hooks", "per_layer", False),
    ("hooks", "adaptive", False),
    ("ew", "flat", False),
    ("functorch", "flat", False),
    ("ghost", "flat", False),
):
    name = f"{mode}, {clipping}"
    model = net()
    if mode == "ghost":
        model[1] = nn.Identity()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(2)
    engine = PrivacyEngine(accountant="prv" if mode == "ghost" else "gdp")
    bound = [1.0] * 6 if clipping == "per_layer" else 1.0
    extra = {}
    if clipping == "adaptive":
        extra = {
            "target_unclipped_quantile": 0.5,
            "clipbound_learning_rate": 0.2,
            "max_clipbound": 10.0,
            "min_clipbound": 0.01,
            "unclipped_num_std": 1.0,
        }
    made = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=loss,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=16),
        noise_multiplier=0.8,
        max_grad_norm=bound,
        poisson_sampling=poisson,
        clipping=clipping,
        grad_sample_mode=mode,
        noise_generator=torch.Generator(device).manual_seed(3),
        **extra,
    )
    private, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if mode == "ghost" else loss
    losses = []
    for batch, label in loader:
        optimizer.zero_grad()
        value = criterion(private(batch.to(device)), label.to(device))
        value.backward()
        optimizer.step()
        losses.append(value.item())
    report(f"{name}: losses", losses)
    report_model(f"{name}: model", private)
    report(f"{name}: epsilon", engine.get_epsilon(delta=1e-5))

torch.manual_seed(4)
engine = PrivacyEngine(accountant="gdp")
model = net()
private, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=1e-2),
    data_loader=DataLoader(TensorDataset(x, y), batch_size=32),
    target_epsilon=8.0,
    target_delta=1e-3,
    epochs=2,
    max_grad_norm=1.0,
)
report("noise", optimizer.noise_multiplier)
losses = []
with BatchMemoryManager(
    data_loader=loader, max_physical_batch_size=8, optimizer=optimizer
) as short:
    for batch, label in short:
        optimizer.zero_grad()
        value = loss(private(batch.to(device)), label.to(device))
        value.backward()
        optimizer.step()
        losses.append(value.item())
report("in short batches", losses)

layers = {
    "linear": (nn.Linear(6, 4), torch.randn(5, 7, 6, generator=g)),
    "embedding": (nn.Embedding(9, 4), torch.randint(0, 9, (5, 7), generator=g)),
    "norm": (nn.LayerNorm(6), torch.randn(5, 7, 6, generator=g)),
    "convolution": (nn.Conv1d(6, 4, 3, stride=2, groups=2), torch.randn(5, 6, 9, generator=g)),
    "cube": (nn.Conv3d(1, 2, 2), torch.randn(3, 1, 4, 4, 4, generator=g)),
    "instance": (nn.InstanceNorm1d(6, affine=True), torch.randn(5, 6, 9, generator=g)),
    "LSTM": (DPLSTM(6, 4, bidirectional=True, batch_first=True), torch.randn(5, 7, 6, generator=g)),
    "GRU": (DPGRU(6, 4, num_layers=2, batch_first=True), torch.randn(5, 7, 6, generator=g)),
}
for name, (layer, inputs) in layers.items():
    torch.manual_seed(5)
    for p in layer.parameters():
        nn.init.normal_(p, std=0.3)
    module = GradSampleModule(layer.to(device))
    out = module(inputs.to(device))
    out = out[0] if isinstance(out, tuple) else out
    out.square().sum().backward()
    for weight, p in module.named_parameters():
        report(f"{name}: {weight}", p.grad_sample)
torch.manual_seed(6)
attention = GradSampleModule(DPMultiheadAttention(8, 2).to(device), batch_first=False)
inputs = torch.randn(7, 5, 8, generator=g).to(device)
attention(inputs, inputs, inputs)[0].square().sum().backward()
report("attention", next(attention.parameters()).grad_sample)

for accountant in (RDPAccountant(), PRVAccountant(), GaussianAccountant()):
    for _ in range(100):
        accountant.step(noise_multiplier=1.1, sample_rate=0.02)
    report(accountant.mechanism(), accountant.get_epsilon(delta=1e-5))
noise = get_noise_multiplier(
    target_epsilon=3, target_delta=1e-5, sample_rate=0.02, epochs=3, accountant="gdp"
)
report("multiplier", noise)
wrong = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
report("faults", len(ModuleValidator.validate(wrong)))
report("mended", [isinstance(ModuleValidator.fix(wrong)[1], nn.GroupNorm)])
finish()
