"""Text from small language models: greedy, beams, and sampling."""

import torch
from report import draw_on_the_cpu, finish, report
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
torch.manual_seed(0)
models = {
    "gpt2": GPT2LMHeadModel(
        GPT2Config(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4)
    ),
    "llama": LlamaForCausalLM(
        LlamaConfig(
            vocab_size=99,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    ),
}
prompt = torch.randint(1, 99, (2, 5)).to(device)
ways = {
    "greedy": {"do_sample": False},
    "beams": {"do_sample": False, "num_beams": 3},
    "sampled": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 1.3},
    "penalised": {"do_sample": False, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
}
for name, model in models.items():
    model.eval().to(device)
    for way, options in ways.items():
        torch.manual_seed(1)
        out = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=10,
            pad_token_id=0,
            **options,
        )
        report(f"{name} {way}", out.flatten().tolist())
finish()
