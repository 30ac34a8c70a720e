"""Muon: the optimizer that trains the matrices inside the blocks.

A gradient tells how the loss changes with each number of a matrix. It is large in a few directions
only, those that the last pieces of text cared about. Muon keeps the directions and makes the steps
in all of them equally long, so the rare ones are learned too. Of all parts of the recipe, this one
saves the most time.
(Keller Jordan and others 2024, kellerjordan.github.io/posts/muon)

PyTorch has torch.optim.Muon. It takes the matrices one by one, and always in 16-bit numbers. This
one takes all matrices of a shape together, in the numbers that the machine is fast with. On a CPU
without 16-bit arithmetic that is many times faster.
"""

import torch


def same_length_in_all_directions(g):
    """Return each matrix in g (N, rows, columns) with all its directions about 1 long.

    That is, roughly, the nearest matrix with orthogonal rows. Roughly is enough, and it needs only
    products of matrices, which computers do best: five rounds of a polynomial that moves the length
    of every direction close to 1 (Newton and Schulz). Its three numbers are Keller Jordan's.
    """
    g = g / (g.norm(dim=(1, 2), keepdim=True) + 1e-7)  # now no direction is longer than 1
    for _ in range(5):  # baddbmm(a, b, c) is beta * a + alpha * b @ c
        square = g @ g.mT
        factor = torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315)
        g = torch.baddbmm(g, factor, g, beta=3.4445)
    return g


class Muon:
    def __init__(self, matrices, dtype):
        """matrices: the parameters to train. dtype: the numbers that this machine is fast with."""
        self.dtype = dtype
        # All matrices of a shape are one group; those that stand upright are turned on their side.
        self.groups = {}
        for matrix in matrices:
            self.groups.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
        # Each matrix has a running average of its gradients, the momentum: it evens out the
        # chance of which text was read.
        self.momentum = [
            torch.zeros(len(group), *shape, device=group[0].device)
            for shape, group in self.groups.items()
        ]

    @torch.no_grad()
    def step(self, lr, decay=0.9):
        """Change every matrix by one step. decay: how much of the old momentum stays."""
        for (shape, group), momentum in zip(self.groups.items(), self.momentum, strict=True):
            lying = [matrix.shape == shape for matrix in group]
            pairs = list(zip(group, lying, strict=True))
            g = torch.stack([m.grad if lies else m.grad.T for m, lies in pairs])
            momentum.lerp_(g, 1 - decay)
            g = g.lerp(momentum, decay)  # 0.9 of the average, 0.1 of what is new (Nesterov)
            steps = same_length_in_all_directions(g.to(self.dtype)).to(momentum.dtype)
            for (matrix, lies), step in zip(pairs, steps, strict=True):
                # A matrix with more outputs than inputs may take larger steps.
                scale = max(1, matrix.size(0) / matrix.size(1)) ** 0.5
                matrix.add_(step if lies else step.T, alpha=-lr * scale)
