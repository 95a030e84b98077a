"""Reinforcement learning with a small transfer to the GPU, and one back, at each step."""

import math
import os

import numpy as np
import torch
from report import finish, report
from torch import nn
from torch.distributions import Categorical

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(31)
np_random = np.random.default_rng(5)


class Pole:
    """A pole on a cart: pushed left or right until it falls."""

    def reset(self):
        self.state, self.steps = np_random.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, speed, angle, turn = self.state
        push = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(angle), math.cos(angle)
        moved = (push + 0.05 * turn * turn * sin) / 1.1
        bend = (9.8 * sin - cos * moved) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        gain = moved - 0.05 * bend * cos / 1.1
        self.state = np.array(
            [x + 0.02 * speed, speed + 0.02 * gain, angle + 0.02 * turn, turn + 0.02 * bend]
        )
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state.astype(np.float32), 1.0, bool(fell or self.steps >= 60)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, x):
        y = self.body(x)
        return Categorical(logits=self.actor(y)), self.critic(y).squeeze(-1)


net = ActorCritic().to(device)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
pole = Pole()
lengths, losses = [], []
for _ in range(6):
    state, logs, values, rewards, entropies = pole.reset(), [], [], [], []
    done = False
    while not done:
        there = torch.from_numpy(state).to(device, non_blocking=True)
        choice, value = net(there)
        # Drawn on the host, so that every device takes the same way.
        action = int(np_random.random() < choice.probs[1].item())
        state, reward, done = pole.step(action)
        logs.append(choice.log_prob(torch.tensor(action, device=device)))
        entropies.append(choice.entropy())
        values.append(value)
        rewards.append(reward)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns, device=device)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    logs, values = torch.stack(logs), torch.stack(values)
    better = returns - values.detach()
    loss = -(logs * better).mean() + 0.5 * nn.functional.smooth_l1_loss(values, returns)
    loss = loss - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    lengths.append(len(rewards))
    losses.append(loss.item())
report("lengths", lengths)
report("losses", losses)
report("weights", [p.detach().abs().mean().item() for p in net.parameters()])
assert os.environ.get("DTYPE", "float32")
finish()
