# needs: pandas torch
"""A bag of learnt word embeddings, like fastText, in PyTorch."""

import re
from collections import Counter
from itertools import pairwise

import pandas as pd
import torch
from torch import nn

torch.manual_seed(0)

train = pd.read_csv("./input/train.csv").sample(frac=1.0, random_state=0)
test = pd.read_csv("./input/test.csv")


def tokens(text: str) -> list[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return words + [f"{a}_{b}" for a, b in pairwise(words)]


counts = Counter(token for text in train["text"] for token in tokens(text))
kept = sorted(token for token, count in counts.items() if count >= 3)
index = {token: i + 1 for i, token in enumerate(kept)}
queues = sorted(train["queue"].unique())
print("vocabulary:", len(index))


def encode(texts) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [[index.get(token, 0) for token in tokens(text)] or [0] for text in texts]
    offsets = torch.tensor([0] + [len(row) for row in rows[:-1]]).cumsum(0)
    return torch.tensor([i for row in rows for i in row]), offsets


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(len(index) + 1, 16, mode="mean", padding_idx=0)
        self.head = nn.Linear(16, len(queues))

    def forward(self, ids, offsets):
        return self.head(self.bag(ids, offsets))


fit, valid = train.iloc[:115], train.iloc[115:]
target = torch.tensor([queues.index(q) for q in fit["queue"]])
truth = torch.tensor([queues.index(q) for q in valid["queue"]])
inputs, held_out = encode(fit["text"]), encode(valid["text"])
model = Bag()
optimiser = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=1e-4)
for step in range(1, 61):
    optimiser.zero_grad()
    loss = nn.functional.cross_entropy(model(*inputs), target)
    loss.backward()
    optimiser.step()
    if step % 20 == 0:
        accuracy = (model(*held_out).argmax(1) == truth).float().mean().item()
        print(f"step {step}: loss {loss.item():.3f}, validation accuracy {accuracy:.3f}")

found = model(*encode(test["text"])).argmax(1).tolist()
test["queue"] = [queues[i] for i in found]
test[["id", "queue"]].to_csv("submission.csv", index=False)
