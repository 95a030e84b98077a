"""Two agents trained on a pole to balance."""

import gymnasium
from report import draw_on_the_cpu, finish, report, report_model
from stable_baselines3 import DQN, PPO

draw_on_the_cpu()

for kind, options, steps in (
    (PPO, {"n_steps": 64, "batch_size": 32, "n_epochs": 2}, 256),
    (DQN, {"learning_starts": 50, "batch_size": 16, "train_freq": 4}, 200),
):
    environment = gymnasium.make("CartPole-v1")
    agent = kind("MlpPolicy", environment, seed=0, device="auto", **options)
    agent.learn(steps)
    report_model(kind.__name__, agent.policy)
    observation, _ = environment.reset(seed=1)
    actions = []
    for _ in range(10):
        action, _ = agent.predict(observation, deterministic=True)
        actions.append(int(action))
        observation, *_ = environment.step(int(action))
    report(f"{kind.__name__}: actions", actions)
finish()
