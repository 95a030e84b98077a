"""A network under scikit-learn's interface: fit, predict, search, pickle."""

import pickle

import numpy as np
import torch
from report import finish, report
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(120, 6)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x):
        return self.net(x).softmax(-1)


net = NeuralNetClassifier(
    Net,
    max_epochs=5,
    lr=0.1,
    verbose=0,
    batch_size=32,
    device=device,
    iterator_train__shuffle=True,
    callbacks=[EpochScoring("roc_auc"), LRScheduler("StepLR", step_size=2)],
)
net.fit(x, y)
report("train losses", net.history[:, "train_loss"])
report("valid losses", net.history[:, "valid_loss"])
report("auc", net.history[:, "roc_auc"])
report("probabilities", net.predict_proba(x)[:8].ravel().tolist())
again = pickle.loads(pickle.dumps(net))
assert (again.predict(x) == net.predict(x)).all()

search = GridSearchCV(net, {"lr": [0.05, 0.2], "module__hidden": [4, 8]}, cv=2, refit=False)
search.fit(x, y)
report("search", search.cv_results_["mean_test_score"].tolist())
target = (x[:, :1] * 2 + 1).astype(np.float32)
regressor = NeuralNetRegressor(
    nn.Linear, module__in_features=6, module__out_features=1, verbose=0, device=device
)
pipe = make_pipeline(StandardScaler(), regressor).fit(x, target)
report("regression", pipe.predict(x)[:8].ravel().tolist())
finish()
