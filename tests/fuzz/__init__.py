"""Random calls and random graphs, held to laws and compared with PyTorch.

A seed is a call or a graph. `calls` says what a call is, `corpus` where samples come from;
`mutate` changes one at random, `library` runs it, `laws` judges it alone, `compare` beside
PyTorch. `graphs` writes programs of operators, views, writes and hooks, `replay` runs them in
both libraries. `runner` does all that in forked children; `accepted` lists what differs and stays.

`files` damages checkpoints and loads them, `bombs` are some that were made to do harm.
"""
