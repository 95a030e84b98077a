"""Scalars, histograms, images and embeddings of tensors in an event file."""

import glob
import os
import tempfile
from pathlib import Path

import torch
from report import finish, report
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event


def events(path):
    """Read the records of an event file: a length, its check, the bytes, their check."""
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        n = int.from_bytes(data[at : at + 8], "little")
        yield Event.FromString(data[at + 12 : at + 12 + n])
        at += n + 16


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1), device=device), step)
        writer.add_scalars("two", {"a": torch.tensor(1.0, device=device), "b": 2.0}, 0)
        writer.add_histogram("weights", torch.randn(100).to(device), 0)
        writer.add_image("image", torch.rand(3, 8, 8).to(device), 0)
        writer.add_images("images", torch.rand(2, 3, 8, 8).to(device), 0)
        writer.add_text("text", "some text", 0)
    (path,) = glob.glob(os.path.join(folder, "events*"))
    for event in events(path):
        for value in event.summary.value:
            name = f"{value.tag} {event.step}"
            if value.HasField("simple_value"):
                report(name, value.simple_value)
            elif value.HasField("histo"):
                report(
                    name, [value.histo.min, value.histo.max, value.histo.sum, *value.histo.bucket]
                )
            elif value.HasField("image"):
                report(name, list(value.image.encoded_image_string))
finish()
