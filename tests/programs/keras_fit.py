"""Keras models on the torch backend: fitted, saved, loaded, and its operations."""

import os
import tempfile

import keras
import numpy as np
import torch
from keras import layers, ops
from report import draw_on_the_cpu, finish, report

draw_on_the_cpu()

assert keras.backend.backend() == "torch"
dtype = os.environ.get("DTYPE", "float32")
if dtype != "float32":
    keras.config.set_dtype_policy(f"mixed_{dtype}")
rng = np.random.default_rng(0)


def weights(name, model):
    report(name, [float(np.abs(w).mean()) for w in model.get_weights()])


images = rng.normal(size=(32, 8, 8, 1)).astype("float32")
rows = rng.normal(size=(32, 6, 4)).astype("float32")
classes = rng.integers(0, 3, 32)
keras.utils.set_random_seed(0)  # layers draw the seeds of their weights when they are made
models = {
    "cnn": (
        [
            layers.Conv2D(4, 3, activation="relu"),
            layers.SeparableConv2D(4, 3, padding="same"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(3),
        ],
        images,
    ),
    "lstm": ([layers.LSTM(8, return_sequences=True), layers.GRU(8), layers.Dense(3)], rows),
    "normed": (
        [layers.LayerNormalization(), layers.Conv1D(4, 2), layers.Flatten(), layers.Dense(3)],
        rows,
    ),
}
for name, (stack, x) in models.items():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([layers.Input(x.shape[1:]), *stack])
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(x, classes, batch_size=8, epochs=2, verbose=0, shuffle=False)
    report(f"{name}: losses", history.history["loss"])
    weights(f"{name}: weights", model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
    np.testing.assert_allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0))

keras.utils.set_random_seed(0)
tokens = layers.Input((6, 4))
attended = layers.MultiHeadAttention(2, 4)(tokens, tokens)
model = keras.Model(tokens, layers.Dense(3)(layers.GlobalAveragePooling1D()(attended)))
report("attention", model.predict(rows, verbose=0).ravel()[:16].tolist())
a = ops.convert_to_tensor(rows[0])
for name, value in {
    "softmax": ops.softmax(a),
    "einsum": ops.einsum("ij,kj->ik", a, a),
    "logsumexp": ops.logsumexp(a, axis=0),
    "top_k": ops.top_k(a, 2)[0],
    "segment_sum": ops.segment_sum(a, ops.convert_to_tensor([0, 0, 1, 1, 2, 2]), 3),
    "where": ops.where(a > 0, a, 0.0),
    "svd": ops.svd(a)[1],
    "resize": ops.image.resize(ops.convert_to_tensor(images[:1]), (4, 4)),
}.items():
    report(f"ops.{name}", value.detach() if isinstance(value, torch.Tensor) else value)
finish()
