"""Graph networks on a small graph, and a loader of graphs."""

import torch
from report import finish, report, report_model
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
n = 20
edges = torch.stack([torch.randint(0, n, (60,)), torch.randint(0, n, (60,))])
edges = edges.to(device)
x, y = torch.randn(n, 8).to(device), torch.randint(0, 3, (n,)).to(device)
layers = {
    "GCN": lambda a, b: GCNConv(a, b),
    "GAT": lambda a, b: GATConv(a, b, heads=2, concat=False),
    "SAGE": lambda a, b: SAGEConv(a, b),
    "GIN": lambda a, b: GINConv(torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU())),
}
for name, layer in layers.items():
    torch.manual_seed(1)
    one, two = layer(8, 16), layer(16, 3)
    model = torch.nn.ModuleList([one, two]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(two(one(x, edges).relu(), edges), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)
    report_model(name, model)

graphs = [
    Data(x=torch.randn(k, 4), edge_index=torch.randint(0, k, (2, 3 * k)), y=torch.tensor([k % 2]))
    for k in range(3, 11)
]
for i, batch in enumerate(DataLoader(graphs, batch_size=4, shuffle=True)):
    batch = batch.to(device)
    report(f"batch {i}", global_mean_pool(batch.x, batch.batch))
    report(f"edges {i}", batch.edge_index.flatten().tolist())
finish()
