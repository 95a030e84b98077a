"""Whole models as ONNX that programs of other kinds have: detection, pixels, bags of words."""

from __future__ import annotations

import pytest
from test_onnx import written

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.export import Dim

F = nn.functional


class Detector(nn.Module):
    """Features of two sizes, the best places, features sampled there, and boxes of those."""

    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.score, self.box = nn.Conv2d(8, 1, 1), nn.Linear(8, 4)

    def forward(self, x):
        fine = F.relu(self.fine(x))
        coarse = F.relu(self.coarse(fine))
        joined = fine + F.interpolate(coarse, size=fine.shape[-2:], mode="nearest")
        scores = self.score(joined).flatten(1).sigmoid()
        best, places = scores.topk(4, dim=1)
        width = joined.size(-1)
        xy = torch.stack([places % width, places // width], -1).float()
        grid = (2 * xy + 1) / width - 1
        sampled = F.grid_sample(joined, grid[:, None], align_corners=False)
        boxes = self.box(sampled.squeeze(2).transpose(1, 2)).sigmoid()
        kept = torch.nonzero(best > 0.5)
        return boxes, best, kept, boxes[kept[:, 0], kept[:, 1]]


class SuperResolution(nn.Module):
    """An image of more pixels, by sub-pixel convolution."""

    def __init__(self, factor):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(),
            nn.Conv2d(8, factor**2, 3, padding=1), nn.PixelShuffle(factor),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class Texts(nn.Module):
    """Classes of texts of any length, by the mean of their words."""

    def __init__(self, mode):
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(50, 6, mode=mode), nn.Linear(6, 3)

    def forward(self, words, starts):
        return self.head(self.words(words, starts))


def test_detection_head_with_an_open_batch():
    torch.manual_seed(3)
    example, other = torch.randn(2, 3, 16, 16), torch.randn(5, 3, 16, 16)
    program = written(
        Detector(), (example,), [(other,)], dynamic_shapes=({0: Dim("batch", min=2)},)
    )
    kinds = {node.op_type for node in program.model_proto.graph.node}
    assert {"Resize", "GridSample", "TopK", "NonZero"} <= kinds


def test_image_of_more_pixels_at_any_size():
    torch.manual_seed(0)
    shapes = ({0: Dim("batch"), 2: Dim("height"), 3: Dim("width")},)
    example, other = torch.randn(2, 1, 12, 10), torch.randn(1, 1, 7, 9)
    written(SuperResolution(3), (example,), [(other,)], dynamic_shapes=shapes)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_words_of_any_number_and_length(mode):
    torch.manual_seed(0)
    args = torch.randint(0, 50, (7,)), torch.tensor([0, 2, 2, 5])
    other = torch.randint(0, 50, (4,)), torch.tensor([0, 3])
    shapes = ({0: Dim("words")}, {0: Dim("texts")})
    written(Texts(mode), args, [other], dynamic_shapes=shapes)
    words = torch.randint(0, 50, (3, 5))
    bag = nn.EmbeddingBag(50, 6, mode=mode, padding_idx=1)
    written(bag, (words,), [(words.flip(0),)])
    if mode == "sum":
        weights = torch.rand(3, 5)
        written(lambda x, w: F.embedding_bag(x, bag.weight, per_sample_weights=w, mode="sum"),
                (words, weights))  # fmt: skip


class Unflattened(nn.Module):
    def forward(self, x):
        return x.unflatten(1, (2, 3)) * 2


def test_parts_of_an_unflattened_dimension():
    shapes = ({0: Dim("rows")},)
    written(Unflattened(), (torch.randn(4, 6),), [(torch.randn(3, 6),)], dynamic_shapes=shapes)


def test_distinct_values_and_their_places():
    x = torch.tensor([[3, 1, 1], [2, 2, 3], [3, 1, 1]])
    other = (torch.ones(3, 3, dtype=torch.int64),)
    written(lambda x: torch.unique(x, return_inverse=True, return_counts=True), (x,), [other])
    written(lambda x: torch.unique(x, dim=0) + 1, (x,), [other])
