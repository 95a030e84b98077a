"""
Actor-critic: balancing a pole
==============================

A cart on a rail learns to hold a pole upright, by trial. Sixty-four carts learn at once, in one
tensor.

``python -m pytensorlib.examples actor_critic`` runs this page as a program; ``--device wgpu``
trains on the GPU.
"""

# %%
# The cart
# --------
#
# The equations are those of Barto, Sutton and Anderson (1983): the state is the cart's place and
# speed, the pole's angle and its speed. An action pushes to the left or to the right. There is no
# simulator to install: all carts are rows of one tensor, and a step is a few lines of arithmetic.

import math

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.distributions import Categorical
from pytensorlib.examples import _common as common

LONGEST = 200  # steps of an episode


class Carts:
    """Many carts with poles; those that fall begin again."""

    def __init__(self, count, device):
        self.count, self.device = count, device
        self.state, self.age = self.fresh(), torch.zeros(count, device=device)

    def state_dict(self):
        """Return what a checkpoint keeps: a run that goes on finds the carts where they were."""
        return {"state": self.state, "age": self.age}

    def load_state_dict(self, state):
        """Put the carts where they were."""
        self.state, self.age = state["state"].to(self.device), state["age"].to(self.device)

    def fresh(self):
        """Return states near upright."""
        return torch.empty(self.count, 4).uniform_(-0.05, 0.05).to(self.device)

    def step(self, action):
        """Push each cart; return which ones ended, and the ages at that time."""
        x, v, angle, spin = self.state.unbind(1)
        force = 20.0 * action - 10.0
        sin, cos = angle.sin(), angle.cos()
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        shift = push - 0.05 * turn * cos / 1.1
        parts = x + 0.02 * v, v + 0.02 * shift, angle + 0.02 * spin, spin + 0.02 * turn
        self.state, self.age = torch.stack(parts, dim=1), self.age + 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > math.radians(12))
        ended, age = fell | (self.age >= LONGEST), self.age
        self.state = torch.where(ended[:, None], self.fresh(), self.state)
        self.age = torch.where(ended, 0.0, age)
        return fell, ended, age


# %%
# The actor and the critic
# ------------------------
#
# Two small networks: the actor gives the odds of the two actions, the critic guesses how much
# reward is still to come,
# in units of 50.


class ActorCritic(nn.Module):
    """Odds of the actions, and the value of a state."""

    def __init__(self, width=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, state):
        """Return the distribution of actions and the value, for each row."""
        return Categorical(logits=self.actor(state)), 50 * self.critic(state)[:, 0]


# %%
# Learning
# --------
#
# All carts take 32 steps. Each step that does not fall is worth 1. The *advantage* of an action is
# what came after it, less what the critic expected: actions with a positive one become more
# likely. ``torch.distributions`` gives the logarithm of an action's probability, whose gradient
# this is. An episode that only grew too old has the critic's value to come.


def returns_of(rewards, falls, ends, values, last, discount=0.99):
    """Return the discounted sum of what came after each step."""
    found, total = [], last
    for reward, fell, ended, value in list(zip(rewards, falls, ends, values, strict=True))[::-1]:
        # What begins anew says nothing of what was before; one that was cut off is guessed.
        after = torch.where(fell, 0.0, torch.where(ended, value, total))
        total = reward + discount * after
        found.append(total)
    return torch.stack(found[::-1])


def main(argv=None):
    """Learn, and draw how long the poles stay up."""
    args = common.parse(common.parser("actor_critic", __doc__, steps=400, small=4), argv)
    carts = Carts(64, args.device)
    model = ActorCritic().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    run = common.Run(args, "moves", 64 * 32, model=model, optimizer=optimizer, carts=carts)
    ages = []
    for step in run.steps():
        for group in optimizer.param_groups:  # smaller steps towards the end
            group["lr"] = 5e-3 * (1 - step / max(args.steps, 400))
        logs, guesses, rewards, falls, ends, chaos = [], [], [], [], [], []
        for _ in range(32):
            odds, value = model(carts.state)
            action = odds.sample()
            fell, ended, age = carts.step(action)
            logs.append(odds.log_prob(action))
            guesses.append(value)
            rewards.append((~fell).float())
            falls.append(fell)
            ends.append(ended)
            chaos.append(odds.entropy())
            ages += age[ended].tolist()
        with torch.no_grad():
            _, last = model(carts.state)
            returns = returns_of(rewards, falls, ends, guesses, last)
        values = torch.stack(guesses)
        advantage = (returns - values).detach()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        loss = -(torch.stack(logs) * advantage).mean()
        loss = loss + (returns - values).square().mean() / 500 - 0.01 * torch.stack(chaos).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        run.note(loss)

    # An episode is cut off at 200 steps.
    if ages:
        latest = ages[-50:]
        mean = sum(latest) / len(latest)
        print(f"{len(ages)} episodes; mean of the last {len(latest)}: {mean:.0f} steps")
    with common.figure(args, "actor_critic.png", width=6) as axes:
        if axes is None or len(ages) < 2:
            return
        size = max(1, len(ages) // 60)
        means = [sum(ages[k : k + size]) / size for k in range(0, len(ages) - size + 1, size)]
        axes[0].plot(range(0, size * len(means), size), means)
        axes[0].axhline(LONGEST, linestyle=":", color="gray")
        axes[0].set(xlabel="episode", ylabel="steps upright")


if __name__ == "__main__":
    main()
