"""A LightningModule fitted, validated, and loaded from its checkpoint."""

import logging
import os
import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from report import finish, report, report_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
lightning.seed_everything(0, verbose=False)
dtype = os.environ.get("DTYPE", "float32")
precision = {"float16": "16-mixed", "bfloat16": "bf16-mixed"}.get(dtype, "32-true")


class Classifier(lightning.LightningModule):
    def __init__(self, hidden=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, hidden), nn.Tanh(), nn.Linear(hidden, 3))
        self.losses = []

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
with tempfile.TemporaryDirectory() as folder:
    keep = ModelCheckpoint(folder, filename="last", monitor="val_loss")
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="auto",
        precision=precision,
        logger=False,
        callbacks=[keep],
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
    )
    model = Classifier()
    trainer.fit(model, DataLoader(data, 16, shuffle=True), DataLoader(data, 32))
    report("losses", model.losses)
    report("validation", trainer.callback_metrics["val_loss"])
    report_model("model", model)
    (path,) = [os.path.join(folder, f) for f in os.listdir(folder)]
    loaded = Classifier.load_from_checkpoint(path, weights_only=False)
    report_model("loaded", loaded)
finish()
