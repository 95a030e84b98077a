"""A learner of fastai on images, one on a table, and what it does around a network."""

# ruff: noqa: F403, F405  (as those who use fastai import it)

import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from fastai.callback.all import *
from fastai.collab import CollabDataLoaders, collab_learner
from fastai.tabular.all import *
from fastai.vision.all import *
from report import draw_on_the_cpu, finish, report

draw_on_the_cpu()


def seed():
    """Seed every generator that fastai draws from."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (fastai draws from it)
    torch.manual_seed(0)


def losses(learner):
    """Return the losses of every step."""
    return [float(v) for v in learner.recorder.losses]


numbers = np.random.default_rng(0)
quiet = [ProgressCallback]

with tempfile.TemporaryDirectory() as folder:
    for i in range(24):
        kind = "dark" if i % 2 else "light"
        pixels = numbers.integers(0, 120, (40, 44, 3)) + (0 if i % 2 else 120)
        Path(folder, kind).mkdir(exist_ok=True)
        PILImage.create(pixels.astype(np.uint8)).save(Path(folder, kind, f"{i:02}.png"))
    seed()
    block = DataBlock(
        blocks=(ImageBlock, CategoryBlock),
        get_items=lambda p: sorted(get_image_files(p), key=str),
        splitter=RandomSplitter(0.25, seed=1),
        get_y=parent_label,
        item_tfms=Resize(36),
        batch_tfms=[*aug_transforms(size=32), Normalize.from_stats(*imagenet_stats)],
    )
    loaders = block.dataloaders(Path(folder), bs=6, num_workers=0)
    x, y = loaders.one_batch()
    report("images", x)
    report("labels", y)
    seed()
    net = nn.Sequential(ConvLayer(3, 4), ConvLayer(4, 8, stride=2), PoolFlatten(), nn.Linear(8, 2))
    metrics = [accuracy, error_rate]
    learner = Learner(loaders, net, loss_func=CrossEntropyLossFlat(), metrics=metrics)
    with learner.no_bar(), learner.no_logging():
        learner.remove_cbs(quiet)
        if os.environ.get("DTYPE") in ("float16", "bfloat16"):
            learner.to_fp16() if os.environ["DTYPE"] == "float16" else learner.to_bf16()
        learner.fit_one_cycle(2, 1e-2, cbs=[MixUp(), GradientClip(1.0)])
        report("images: losses", losses(learner))
        report("images: validated", [float(v) for v in learner.validate()])
        report("images: rates", learner.recorder.hps["lr"])
        predicted, _ = learner.get_preds(dl=loaders.valid)
        report("images: predicted", predicted)
        interpretation = ClassificationInterpretation.from_learner(learner)
        report("confusion", interpretation.confusion_matrix().flatten().tolist())
        name, index, chances = learner.predict(Path(folder, "dark", "01.png"))
        report("one image", chances)
        tta, _ = learner.tta(n=2)
        report("many looks", tta)

seed()
table = pd.DataFrame(
    {
        "colour": numbers.choice(["red", "green", "blue"], 120),
        "size": numbers.normal(size=120),
        "weight": numbers.normal(size=120),
    }
)
table["price"] = table["size"] + (table["colour"] == "red") + 0.1 * numbers.normal(size=120)
table["price"] = table["price"].astype(np.float32)
table.loc[3, "weight"] = np.nan
data = TabularDataLoaders.from_df(
    table,
    procs=[Categorify, FillMissing, Normalize],
    cat_names=["colour"],
    cont_names=["size", "weight"],
    y_names="price",
    y_block=RegressionBlock(),
    valid_idx=list(range(90, 120)),
    bs=30,
    num_workers=0,
)
learner = tabular_learner(data, layers=[12, 6], metrics=[rmse, mae], n_out=1)
with learner.no_bar(), learner.no_logging():
    learner.remove_cbs(quiet)
    learner.fit_flat_cos(2, 1e-2)
    report("table: losses", losses(learner))
    report("table: validated", [float(v) for v in learner.validate()])
    found, _ = learner.get_preds(dl=learner.dls.test_dl(table.iloc[:20]))
    report("table: predicted", found)
    learner.fit_one_cycle(1, 5e-3, wd=0.1)
    report("table: more losses", losses(learner))

seed()
ratings = pd.DataFrame(
    {
        "user": numbers.integers(0, 12, 200),
        "item": numbers.integers(0, 9, 200),
        "rating": numbers.integers(1, 6, 200),
    }
)
data = CollabDataLoaders.from_df(ratings, bs=40, seed=2, num_workers=0)
learner = collab_learner(data, n_factors=5, y_range=(0.5, 5.5))
with learner.no_bar(), learner.no_logging():
    learner.remove_cbs(quiet)
    learner.fit_one_cycle(2, 5e-3)
    report("ratings: losses", losses(learner))
    report("ratings: bias", learner.model.bias(learner.dls.classes["item"][1:4], is_item=True))

x = torch.randn(64, 5)
y = x[:, :2] * x[:, 2:4]
pairs = list(zip(x, y))
plain = DataLoaders.from_dsets(TfmdLists(pairs[:48], noop), pairs[48:], bs=16, num_workers=0)
for kind in (SGD, RMSProp, Adam, RAdam, QHAdam, Larc, Lamb, ranger):
    seed()
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    learner = Learner(plain, net, loss_func=MSELossFlat(), opt_func=kind)
    with learner.no_bar(), learner.no_logging():
        learner.remove_cbs(quiet)
        learner.fit(2, 1e-2)
        report(f"{kind.__name__}: losses", losses(learner))
seed()
with learner.no_bar(), learner.no_logging():
    found = learner.lr_find(num_it=20, show_plot=False)
    report("rate", list(found))
finish()
