"""Learning itself: one step of it, the losses, and what it takes to go on later."""

import math
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from muon import Muon

# torchrun starts several processes and numbers them. Without it there is one, number 0.
RANK = int(os.environ.get("RANK", 0))
RANKS = int(os.environ.get("WORLD_SIZE", 1))


class Trainer:
    """The model, its optimizers, and how far they have come."""

    def __init__(self, model, dtype, lr, steps):
        self.model, self.dtype, self.lr, self.steps = model, dtype, lr, steps
        self.device = next(model.parameters()).device
        # With several processes, each one learns from its share of the batch, and this wrapper
        # averages the gradients. So all of them make the same step.
        self.parallel = model
        if RANKS > 1:
            self.parallel = DistributedDataParallel(model, broadcast_buffers=False)
        # Muon is for matrices. Tables, and the scores made at the end, do better with AdamW.
        self.muon = Muon(list(model.blocks.parameters()), dtype)
        rest = [*model.here.parameters(), *model.before.parameters(), *model.scores.parameters()]
        self.adamw = torch.optim.AdamW(rest, betas=(0.8, 0.95), weight_decay=0.0, fused=True)
        self.step, self.seconds, self.history = 0, 0.0, []
        # The sum of the losses since the last line. It stays on the GPU: reading it would mean
        # to wait for the GPU in every step.
        self.loss_sum, self.loss_count = torch.zeros((), device=self.device), 0

    def loss(self, model, characters, targets):
        """Return how surprised the model is by the real next characters, on average.

        The scores become probabilities. The surprise is minus the logarithm of the probability of
        the right character (cross entropy): 0 is perfect, guessing among 65 is 4.17.
        """
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            scores = model(characters)  # (B, T, V)
        return cross_entropy(scores.float().flatten(0, 1), targets.flatten())

    def learn(self, characters, targets):
        """Make one step: how wrong is the model, and which change makes it a bit less wrong?"""
        share = slice(RANK, None, RANKS)
        loss = self.loss(self.parallel, characters[share], targets[share])
        loss.backward()  # now every parameter has its gradient: the direction in which loss grows
        # Large steps at first, then smaller and smaller ones, to settle down.
        lr = self.lr * (1 - self.step / self.steps)
        self.muon.step(lr)
        # Half of it suits AdamW, whose numbers have another size. (Measured, like all of this.)
        for group in self.adamw.param_groups:
            group["lr"] = lr / 2
        self.adamw.step()
        self.model.zero_grad()
        self.loss_sum += loss.detach()
        self.loss_count += 1
        self.step += 1

    def training_loss(self):
        """Return the average loss since the last line. Ends the program when it is not a number."""
        if RANKS > 1:
            dist.all_reduce(self.loss_sum)
            self.loss_sum /= RANKS
        mean = self.loss_sum.item() / max(1, self.loss_count)
        if not math.isfinite(mean):
            sys.exit(
                f"The loss is {mean} at step {self.step}: the training went out of control. "
                f"Lower the learning rate, for example --lr {self.lr / 4:g}"
            )
        return mean

    @torch.no_grad()
    def validation_loss(self, windows):
        """Return the average loss over the whole validation part."""
        rows = max(1, 8192 // windows[0].size(1))  # 8192 characters at a time fit everywhere
        total = 0.0
        for characters, targets in zip(*(part.split(rows) for part in windows), strict=True):
            total += self.loss(self.model, characters, targets) * len(characters)
        return total.item() / len(windows[0])

    def state(self):
        """Return all that it takes to go on later."""
        return {
            "model": self.model.state_dict(),
            "muon": self.muon.momentum,
            "adamw": self.adamw.state_dict(),
            "random": torch.get_rng_state(),
            "loss": [self.loss_sum.item(), self.loss_count],
            "progress": [self.step, self.seconds, self.history],
        }

    def restore(self, state):
        """Go on from what state() returned."""
        self.model.load_state_dict(state["model"])
        for momentum, saved in zip(self.muon.momentum, state["muon"], strict=True):
            momentum.copy_(saved)
        self.adamw.load_state_dict(state["adamw"])
        torch.set_rng_state(state["random"])
        self.loss_sum.fill_(state["loss"][0])
        self.loss_count = state["loss"][1]
        self.step, self.seconds, self.history = state["progress"]
