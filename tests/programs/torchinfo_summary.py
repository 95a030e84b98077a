"""The table of a network's layers."""

from report import finish, report
from torch import nn
from torchinfo import summary

model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(8 * 8 * 8, 10),
)
table = summary(
    model,
    (2, 3, 16, 16),
    verbose=0,
    col_names=("input_size", "output_size", "num_params", "mult_adds"),
)
report("parameters", table.total_params)
report("multiplications", table.total_mult_adds)
report("bytes of outputs", table.total_output_bytes)
report("characters", [ord(c) for c in str(table)])
lstm = summary(nn.LSTM(8, 16, num_layers=2, batch_first=True), (4, 5, 8), verbose=0)
report("of an LSTM", [ord(c) for c in str(lstm)])
finish()
