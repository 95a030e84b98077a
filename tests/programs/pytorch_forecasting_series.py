"""Forecasts of many series from one table: the data set, networks and losses of forecasting."""

import os
import warnings

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import pytorch_forecasting as pf
import torch
from lightning.pytorch.plugins.precision import MixedPrecision
from pytorch_forecasting.data.encoders import GroupNormalizer
from report import draw_on_the_cpu, finish, report

warnings.simplefilter("ignore")
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
dtype = os.environ.get("DTYPE", "float32")
random = np.random.default_rng(0)
steps = np.arange(40)
table = pd.DataFrame(
    {
        "time": np.tile(steps, 4),
        "group": np.repeat(list("abcd"), 40),
        "kind": np.repeat(["x", "y", "x", "y"], 40),
        "price": random.normal(size=160),
        "value": np.concatenate(
            [np.sin(steps / (3 + i)) + 2 + 0.1 * random.normal(size=40) for i in range(4)]
        ),
    }
)
shared = {
    "time_idx": "time",
    "target": "value",
    "group_ids": ["group"],
    "max_encoder_length": 10,
    "max_prediction_length": 4,
    "time_varying_unknown_reals": ["value"],
}
full = pf.TimeSeriesDataSet(
    table[lambda t: t.time < 34],
    static_categoricals=["group", "kind"],
    time_varying_known_reals=["time", "price"],
    target_normalizer=GroupNormalizer(groups=["group"], transformation="softplus"),
    add_relative_time_idx=True,
    add_target_scales=True,
    add_encoder_length=True,
    min_encoder_length=5,
    **shared,
)
plain = pf.TimeSeriesDataSet(table[lambda t: t.time < 34], **shared)
report("rows", [len(full), len(plain)])
batch, (truth, _) = next(iter(full.to_dataloader(train=False, batch_size=8)))
report("continuous", batch["encoder_cont"])
report("categories", batch["encoder_cat"])
report("scales", batch["target_scale"])
report("truth", truth)
kinds = {
    "TemporalFusionTransformer": (
        full,
        {
            "hidden_size": 8,
            "attention_head_size": 2,
            "hidden_continuous_size": 4,
            "loss": pf.QuantileLoss(),
            "dropout": 0.0,
            "mask_bias": -1e4,  # float16 has no -1e9
        },
    ),
    "DeepAR": (
        pf.TimeSeriesDataSet(
            table[lambda t: t.time < 34],
            static_categoricals=["group"],
            time_varying_known_reals=["price"],
            **shared,
        ),
        {"hidden_size": 8, "rnn_layers": 1, "loss": pf.NormalDistributionLoss(), "dropout": 0.0},
    ),
    "NBeats": (
        plain,
        {
            "widths": [16, 16],
            "num_blocks": [1, 1],
            "num_block_layers": [1, 1],
            "backcast_loss_ratio": 0.1,
        },
    ),
    "NHiTS": (plain, {"hidden_size": 16, "loss": pf.MAE(), "dropout": 0.0}),
    "DecoderMLP": (full, {"hidden_size": 8, "n_hidden_layers": 1, "loss": pf.RMSE()}),
    "RecurrentNetwork": (
        plain,
        {"hidden_size": 8, "rnn_layers": 1, "loss": pf.SMAPE(), "dropout": 0.0},
    ),
    "TiDEModel": (plain, {"hidden_size": 8, "loss": pf.MAE(), "dropout": 0.0}),
}
for name, (data, options) in kinds.items():
    pl.seed_everything(1, verbose=False)
    # Adam with its usual eps makes much of gradients that are only what was rounded.
    options = {"optimizer": "adam", "optimizer_params": {"eps": 1e-3}, **options}
    model = getattr(pf, name).from_dataset(data, learning_rate=1e-2, log_interval=-1, **options)
    scaler = torch.amp.GradScaler(device, init_scale=256.0)  # at 65536 the first step overflows
    half = MixedPrecision("16-mixed", device, scaler) if dtype == "float16" else None
    trainer = pl.Trainer(
        accelerator="auto",
        precision="bf16-mixed" if dtype == "bfloat16" else None,
        plugins=half,
        max_epochs=2,
        limit_train_batches=3,
        gradient_clip_val=0.5,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    loader = data.to_dataloader(train=True, batch_size=16, num_workers=0)
    trainer.fit(model, train_dataloaders=loader)
    report(f"{name}: loss", trainer.callback_metrics["train_loss_epoch"])
    report(f"{name}: weights", [p.abs().mean().item() for p in model.parameters()])
    # A forecast from the last rows of each series, which training did not see.
    ahead = type(data).from_dataset(data, table, predict=True, stop_randomization=True)
    model.eval().to(device)
    torch.manual_seed(2)
    with torch.no_grad():
        x, _ = next(iter(ahead.to_dataloader(train=False, batch_size=4)))
        out = model({k: v.to(device) for k, v in x.items()})
        report(
            f"{name}: forecast",
            model.to_prediction(out, n_samples=20)
            if name == "DeepAR"
            else model.to_prediction(out),
        )
        if name == "TemporalFusionTransformer":
            seen = model.interpret_output(out, reduction="sum")
            report("attention", seen["attention"])
            report("importance", seen["encoder_variables"])

guess, real = (torch.rand(4, 5, 7) + 0.5).to(device), (torch.rand(4, 5) + 0.5).to(device)
report("quantiles", pf.QuantileLoss()(guess, real))
for metric in (pf.MAE(), pf.SMAPE(), pf.MAPE(), pf.RMSE(), pf.PoissonLoss()):
    report(type(metric).__name__, metric(guess[..., :1], real))
finish()
