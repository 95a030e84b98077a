"""A LeNet of lazy layers, as textbooks build it, trained on images of two kinds."""

import torch
from report import finish, report, report_model
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def init_cnn(module):
    if type(module) in (nn.Linear, nn.Conv2d):
        nn.init.xavier_uniform_(module.weight)


class LeNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.net = nn.Sequential(
            nn.LazyConv2d(6, kernel_size=5, padding=2),
            nn.LazyBatchNorm2d(),
            nn.Sigmoid(),
            nn.AvgPool2d(kernel_size=2, stride=2),
            nn.LazyConv2d(16, kernel_size=5),
            nn.Sigmoid(),
            nn.AvgPool2d(kernel_size=2, stride=2),
            nn.Flatten(),
            nn.LazyLinear(120),
            nn.Sigmoid(),
            nn.LazyLinear(classes),
        )

    def forward(self, x):
        return self.net(x)


x = torch.randn(32, 1, 28, 28).to(device)
y = torch.arange(32, device=device) % 2
x[y == 1, :, 8:20, 8:20] += 1.0
model = LeNet(classes=2)
assert isinstance(model.net[0], nn.LazyConv2d)
model(x[:1].cpu())
assert type(model.net[0]) is nn.Conv2d and type(model.net[8]) is nn.Linear
report("shapes", [n for p in model.parameters() for n in p.shape])
model.apply(init_cnn)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
losses = []
for _ in range(15):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
report_model("model", model)
finish()
