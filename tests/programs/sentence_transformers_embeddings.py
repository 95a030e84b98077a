"""Embeddings of sentences by a tiny model with random weights: training, search, ranking."""

import tempfile
from pathlib import Path

import torch
from report import draw_on_the_cpu, finish, report
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder, losses, util
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

draw_on_the_cpu()
sentences = [
    "a small cat sat on the mat",
    "the cat is on a mat",
    "two dogs run in the park",
    "a dog runs through a park",
    "he plays the old guitar",
    "music from an old guitar",
]
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({w for s in sentences for w in s.split()})]
tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]",
    pair="[CLS] $A [SEP] $B:1 [SEP]:1",
    special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
)
special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
config = BertConfig(
    vocab_size=len(words),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=24,
    num_labels=1,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
with tempfile.TemporaryDirectory() as folder:
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=24, **special
    ).save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    body = Transformer(folder)
    model = SentenceTransformer(modules=[body, Pooling(16, "mean"), Normalize()])
    report("embeddings", model.encode(sentences, convert_to_tensor=True, show_progress_bar=False))
    report("two", model.encode(sentences[:2], convert_to_tensor=True, precision="float32"))
    model.save(str(Path(folder, "saved")))
    again = SentenceTransformer(str(Path(folder, "saved")))
    report("read again", again.encode(sentences, convert_to_tensor=True))
    other = Path(folder, "cross")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=24, **special
    ).save_pretrained(other)
    torch.manual_seed(1)
    BertForSequenceClassification(config).save_pretrained(other)
    judge = CrossEncoder(str(other))
    torch.manual_seed(2)
    BertForMaskedLM(config).save_pretrained(other)
    terms = SparseEncoder(modules=[MLMTransformer(str(other)), SpladePooling("max")])

device = model.device


def tokens(texts):
    """Return what the model reads of some texts, where it is."""
    return util.batch_to_device(model.tokenize(texts), device)


pairs = [tokens(sentences[i::2]) for i in (0, 1)]
triple = [*pairs, tokens(sentences[1::2][::-1])]
scores = torch.tensor([0.9, 0.2, 0.6], device=device)
ways = {
    "ranking": (losses.MultipleNegativesRankingLoss(model), pairs, None),
    "symmetric": (losses.MultipleNegativesSymmetricRankingLoss(model), pairs, None),
    "cosine": (losses.CosineSimilarityLoss(model), pairs, scores),
    "CoSENT": (losses.CoSENTLoss(model), pairs, scores),
    "angle": (losses.AnglELoss(model), pairs, scores),
    "contrastive": (losses.ContrastiveLoss(model), pairs, torch.tensor([1, 0, 1], device=device)),
    "online": (losses.OnlineContrastiveLoss(model), pairs, torch.tensor([1, 0, 1], device=device)),
    "triplet": (losses.TripletLoss(model, triplet_margin=1.0), triple, None),
    "margin": (losses.MarginMSELoss(model), triple, scores),
    "softmax": (losses.SoftmaxLoss(model, 16, 3), pairs, torch.tensor([0, 2, 1], device=device)),
    "hard": (
        losses.BatchHardTripletLoss(model),
        [tokens(sentences)],
        torch.tensor([0, 0, 1, 1, 2, 2], device=device),
    ),
    "matryoshka": (
        losses.MatryoshkaLoss(model, losses.MultipleNegativesRankingLoss(model), [16, 8]),
        pairs,
        None,
    ),
    "cached": (losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2), pairs, None),
}
for name, (loss, features, labels) in ways.items():
    model.zero_grad()
    loss.to(device)
    value = loss([dict(f) for f in features], labels)
    value.backward()
    report(f"{name}: loss", value)
    norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
    report(f"{name}: gradients", [n for n in norms if n > 1e-3 * max(norms)])

model.train()
optimizer, values = torch.optim.AdamW(model.parameters(), lr=1e-2), []
loss = losses.MultipleNegativesRankingLoss(model)
for _ in range(5):
    optimizer.zero_grad()
    value = loss([dict(f) for f in pairs], None)
    value.backward()
    optimizer.step()
    values.append(value.item())
report("losses", values)
model.eval()
found = model.encode(sentences, convert_to_tensor=True)
report("similarity", model.similarity(found, found))
hits = util.semantic_search(found[::2], found[1::2], top_k=2)
report("hits", [h["corpus_id"] for row in hits for h in row])
report("scores", [h["score"] for row in hits for h in row])
report("groups", [i for group in util.community_detection(found, 0.8, 2) for i in group])
report("mined", [v for row in util.paraphrase_mining_embeddings(found)[:5] for v in row])
report("judged", judge.predict([(sentences[0], s) for s in sentences[1:]], convert_to_tensor=True))
report("ranked", [r["corpus_id"] for r in judge.rank(sentences[0], sentences[1:])])
found = terms.encode(sentences)
report("terms", found.to_dense())
report("of sparse", [found.is_sparse, terms.sparsity(found)["active_dims"]])
report("similarity of terms", terms.similarity(found, found))
report("weights of terms", [weight for _, weight in terms.decode(found[0], top_k=4)])
finish()
