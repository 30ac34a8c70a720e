"""The model: a tiny GPT. It reads some characters and says which one may come next.

It knows nothing about letters. It computes with numbers: every character has one, its position in
the list of all characters of the text ("a" may be 39). What comes out is a score for each
character of that list: the higher the score, the more likely it comes next.

Inside, every character is a vector: n_embd numbers, 128 of them unless you choose otherwise. At
the start the vector says which character it is. Block by block the model adds to it what it finds
out: that it stands at the start of a word, that a name came before, and so on. All the numbers in
the matrices below are random or zero at first. Training (train.py) finds better ones.

The comments behind the lines tell the shapes of the tables of numbers (tensors):
    B  batch: pieces of text at once                  H  heads: n_head, see Attention
    T  time: characters in each piece                 D  width of one head: n_embd / n_head
    C  channels: the width of the model, n_embd       V  vocabulary: how many different characters
"""

import torch
from torch import nn
from torch.nn import functional as F


def normalize(x):
    """Scale every vector so that its numbers have the size 1 on average.

    Every block adds to the vectors, so they would grow and grow. A matrix learns best from
    numbers of a known size. (RMSNorm: Zhang and Sennrich 2019, arxiv.org/abs/1910.07467)
    """
    return F.rms_norm(x, (x.size(-1),))


def rotate(x, cos, sin):
    """Turn each pair of numbers in x by an angle that grows with the position in the text.

    How well two vectors fit each other (see Attention) then depends on how far apart their
    characters are, and not on where in the text they stand. Without it, near and far look alike.
    (Rotary positions: Su and others 2021, arxiv.org/abs/2104.09864)
    """
    a, b = x.chunk(2, dim=-1)  # (B, H, T, D/2) each: the two coordinates of D/2 points
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)  # (B, H, T, D)


def matrix(inputs, outputs, zero=False):
    """Return a layer that multiplies vectors with a matrix: (..., inputs) -> (..., outputs).

    It starts with random numbers: the more inputs are added up, the smaller, so that the sums stay
    small. Or with zeros: then it adds nothing at first, and the model begins as simple as can be.
    (Zero initialization: Zhang, Dauphin and Ma 2019, arxiv.org/abs/1901.09321)
    """
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=0.0 if zero else 0.5 * inputs**-0.5)
    return layer


class Attention(nn.Module):
    """Let every character look back at the ones before it, and take over what it needs.

    Each character asks a question (query). Each one also has a label (key) and something to tell
    (value). Where a query fits a key, the value is taken over.
    """

    def __init__(self, n_embd, n_head):
        super().__init__()
        # Several heads look for different things at once. They share the width evenly.
        assert n_embd % n_head == 0
        self.n_head = n_head
        self.query = matrix(n_embd, n_embd)
        self.key = matrix(n_embd, n_embd)
        self.value = matrix(n_embd, n_embd)
        self.output = matrix(n_embd, n_embd, zero=True)

    def split(self, x):
        """Cut each vector into pieces, and give each head a table of its own, (T, D)."""
        B, T, C = x.shape
        return x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, H, T, D)

    def forward(self, x, cos, sin, future):
        q = rotate(self.split(self.query(x)), cos, sin)  # (B, H, T, D)
        k = rotate(self.split(self.key(x)), cos, sin)  # (B, H, T, D)
        v = self.split(self.value(x))  # (B, H, T, D)

        if x.is_cuda:
            # The lines below in a single step, which is much faster on a GPU.
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D)
        else:
            # How well does each query fit each key? A product of vectors is large when they point
            # the same way. Dividing by the root of D keeps the scores from growing with the width.
            scores = q @ k.transpose(2, 3) * q.size(-1) ** -0.5  # (B, H, T, T)
            # Nobody may look into the future: those scores become minus infinity, and softmax,
            # which turns a row of scores into shares of 100 percent, makes that a share of 0.
            shares = (scores + future).softmax(dim=-1)  # (B, H, T, T)
            # Take over the values, each according to its share.
            y = shares @ v  # (B, H, T, D)

        # Put the pieces of the heads side by side again, and mix them.
        y = y.transpose(1, 2).flatten(2)  # (B, T, C)
        return self.output(y)  # (B, T, C)


class Block(nn.Module):
    """One round: look at the other characters, then think about it alone."""

    def __init__(self, n_embd, n_head):
        super().__init__()
        self.attention = Attention(n_embd, n_head)
        # The thinking: four times as wide, then back. Without the ReLU in between, which sets
        # everything below 0 to 0, the two matrices could do no more than a single one.
        self.widen = matrix(n_embd, 4 * n_embd)
        self.narrow = matrix(4 * n_embd, n_embd, zero=True)

    def forward(self, x, cos, sin, future):
        # Always "x + ...": a block adds to what is known, it does not replace it.
        x = x + self.attention(normalize(x), cos, sin, future)  # (B, T, C)
        x = x + self.narrow(F.relu(self.widen(normalize(x))))  # (B, T, C)
        return x


class GPT(nn.Module):
    """The whole model: characters to vectors, some blocks, vectors to scores."""

    def __init__(self, n_vocab, n_layer, n_head, n_embd, block_size):
        super().__init__()
        self.block_size = block_size  # the longest piece of text that it can read
        # Two tables with a vector for each character: one for the character itself, and one that
        # is added to the character after it. Which pair of letters it is tells a lot.
        self.here = nn.Embedding(n_vocab, n_embd)
        self.before = nn.Embedding(n_vocab, n_embd)
        self.blocks = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
        self.scores = matrix(n_embd, n_vocab, zero=True)

        # Angles for rotate(), for each position and each pair of numbers. The first pair turns
        # fast and tells neighbors apart. The last, almost 100 times slower, tells near from far.
        points = n_embd // n_head // 2
        speed = 100.0 ** -(torch.arange(points) / points)  # (D/2)
        angle = torch.arange(block_size).outer(speed)  # (T, D/2)
        # Minus infinity where a character (row) would look at a later one (column), else 0.
        future = torch.full((block_size, block_size), float("-inf")).triu(1)  # (T, T)
        # Buffers move to the GPU with the model, but are not trained and not saved.
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self.register_buffer("future", future, persistent=False)

    def forward(self, characters):
        """Take characters as numbers (B, T), return the scores of the next ones (B, T, V)."""
        T = characters.size(1)
        cos, sin, future = self.cos[:T], self.sin[:T], self.future[:T, :T]

        # The vectors of the characters before: shifted by one, with zeros for the first.
        before = F.pad(self.before(characters[:, :-1]), (0, 0, 1, 0))  # (B, T, C)
        x = normalize(self.here(characters) + before)  # (B, T, C)
        for block in self.blocks:
            x = block(x, cos, sin, future)  # (B, T, C)
        return self.scores(normalize(x))  # (B, T, V)
