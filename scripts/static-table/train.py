"""Train a token table so that weighted means of its rows are near the teacher's vectors.

    python train.py FOLDER OUT.npz [--dim 256] [--steps 3000] …

FOLDER holds `tokens.npz` (see `tokenize_corpus.py`), `teach.npy`, `teach.done.npy` and `vocabulary_teach.npy`.

First a ridge regression: the table for which the mean of a text's rows is closest to the teacher's vector of the text,
held near the teacher's vectors of single words. Then steps of gradient descent: within a batch, how near texts are to
each other must look as the teacher sees it. Half of the batches are pairs of texts that say the same, half are texts
about the same few things; a fifth of every batch are translations. `--hard` above zero pulls pairs together more than
the teacher does; at 0.5 that made the table worse on texts it had not seen.
"""

import argparse
import time

import numpy as np
import scipy.sparse as sparse

HALVING = 20.0


def position_weights(lengths):
    """What a token counts by its place in the text: 1, 20/21, 20/22, …"""
    places = np.concatenate([np.arange(length) for length in lengths]) if len(lengths) else np.zeros(0)
    return (1.0 / (1.0 + places / HALVING)).astype(np.float32)


def pooling(pointers, tokens, size):
    """The matrix that makes weighted means of rows."""
    lengths = np.diff(pointers)
    matrix = sparse.csr_matrix((position_weights(lengths), tokens, pointers), shape=(len(lengths), size))
    matrix.sum_duplicates()
    totals = np.maximum(np.asarray(matrix.sum(1)).ravel(), 1e-6)
    return (sparse.diags((1 / totals).astype(np.float32)) @ matrix).tocsr()


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def ridge(matrix, targets, prior, strength, rounds):
    """Conjugate gradients for min |matrix·table − targets|² + strength·|table − prior|²."""
    transposed = matrix.T.tocsr()
    scale = (np.asarray(matrix.multiply(matrix).sum(0)).ravel() + strength).astype(np.float32)[:, None]

    def apply(rows):
        return transposed @ (matrix @ rows) + strength * rows

    table = prior.copy()
    residual = transposed @ targets + strength * prior - apply(table)
    step = residual / scale
    direction, size = step.copy(), (residual * step).sum(0)
    for _ in range(rounds):
        moved = apply(direction)
        length = size / np.maximum((direction * moved).sum(0), 1e-20)
        table += length * direction
        residual -= length * moved
        step = residual / scale
        following = (residual * step).sum(0)
        direction = step + (following / np.maximum(size, 1e-20)) * direction
        size = following
    return table


class Descent:
    """Adam that moves only the rows of the tokens in a batch."""

    def __init__(self, table, rate):
        self.table, self.rate = table, rate
        self.first, self.second = np.zeros_like(table), np.zeros_like(table)
        self.times = np.zeros(len(table), np.int32)

    def move(self, rows, gradient, share):
        self.times[rows] += 1
        times = self.times[rows][:, None]
        first = 0.9 * self.first[rows] + 0.1 * gradient
        second = 0.99 * self.second[rows] + 0.01 * gradient * gradient
        self.first[rows], self.second[rows] = first, second
        step = (first / (1 - 0.9 ** times)) / (np.sqrt(second / (1 - 0.99 ** times)) + 1e-8)
        self.table[rows] -= self.rate * share * step


class Neighbours:
    """Texts by what they are about, so that a batch can be made of texts that are hard to tell apart."""

    CLUSTERS = 400
    DRAWN = 6

    def __init__(self, rng, vectors, places):
        centers = vectors[rng.choice(places, self.CLUSTERS, replace=False)]
        for _ in range(4):
            sample = vectors[rng.choice(places, 40000)]
            nearest = (sample @ centers.T).argmax(1)
            sums = np.zeros_like(centers)
            np.add.at(sums, nearest, sample)
            centers = unit(sums + 1e-3 * centers)
        nearest = np.concatenate([(vectors[part] @ centers.T).argmax(1) for part in np.array_split(places, 50)])
        self.groups = [group for group in (places[nearest == number] for number in range(self.CLUSTERS)) if len(group) > 50]

    def draw(self, rng, count):
        groups = [self.groups[number] for number in rng.choice(len(self.groups), self.DRAWN, replace=False)]
        return [np.concatenate([rng.choice(group, count // self.DRAWN + 1) for group in groups])[:count] for _ in range(2)]


def softmax(rows):
    rows = np.exp(rows - rows.max(1, keepdims=True))
    return rows / rows.sum(1, keepdims=True)


def batch_gradient(table, left, right, teacher_left, teacher_right, options):
    """The loss of a batch, and its gradient by row of the table."""
    stacked = sparse.vstack([left, right]).tocsr()
    rows = np.unique(stacked.indices)
    places = np.zeros(table.shape[0], np.int32)
    places[rows] = np.arange(len(rows))
    small = sparse.csr_matrix((stacked.data, places[stacked.indices], stacked.indptr), shape=(stacked.shape[0], len(rows)))
    means = small @ table[rows]
    lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-4)
    vectors = means / lengths
    count = left.shape[0]
    one, two = vectors[:count], vectors[count:]

    similar = one @ two.T / options.temperature
    seen = teacher_left @ teacher_right.T / options.teacher_temperature
    own = np.eye(count, dtype=np.float32)
    forward = softmax(similar) - (options.hard * own + (1 - options.hard) * softmax(seen))
    backward = softmax(similar.T) - (options.hard * own + (1 - options.hard) * softmax(seen.T))
    slope = (forward + backward.T) / (2 * count * options.temperature)
    gradient = np.concatenate([slope @ two, slope.T @ one])
    # Towards the teacher's own vector of the text.
    gradient -= options.direct / (2 * count) * np.concatenate([teacher_left, teacher_right])
    gradient = (gradient - vectors * (gradient * vectors).sum(1, keepdims=True)) / lengths
    loss = -np.log(np.maximum(softmax(similar).diagonal(), 1e-9)).mean()
    return loss, rows, (small.T @ gradient).astype(np.float32)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--strength", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=0.006)
    parser.add_argument("--temperature", type=float, default=0.07)
    parser.add_argument("--teacher-temperature", type=float, default=0.07)
    parser.add_argument("--hard", type=float, default=0.0)
    parser.add_argument("--direct", type=float, default=1.0)
    parser.add_argument("--neighbours", type=float, default=0.5)
    parser.add_argument("--start")
    return parser.parse_args()


def main():
    options = parse()
    data = np.load(f"{options.folder}/tokens.npz")
    taught = np.load(f"{options.folder}/teach.npy").astype(np.float32)
    done = np.load(f"{options.folder}/teach.done.npy")
    words = np.load(f"{options.folder}/vocabulary_teach.npy").astype(np.float32)
    size = len(words)

    center = taught[done].mean(0)
    sample = taught[done][::4] - center
    _, axes = np.linalg.eigh(sample.T @ sample)
    axes = np.ascontiguousarray(axes[:, ::-1][:, :options.dim])
    taught = ((taught - center) @ axes).astype(np.float32)
    english = pooling(data["pointers"], data["tokens"], size)
    foreign = pooling(data["foreign_pointers"], data["foreign_tokens"], size)
    translated = data["translated"]

    # A word alone is what the teacher says of it, less for words that are in every text. Words that only translations
    # have, the teacher does not know.
    counts = np.bincount(data["tokens"], minlength=size) + 1.0
    elsewhere = np.bincount(data["foreign_tokens"], minlength=size)
    prior = ((words - center) @ axes) * (1e-3 / (1e-3 + counts / counts.sum()))[:, None]
    prior[(data["unknown"]) | ((elsewhere > 10) & (counts < 0.2 * elsewhere))] = 0
    prior = prior.astype(np.float32)

    start = time.time()
    if options.start:
        table = np.load(options.start)["table"]
    else:
        whole = done & (np.diff(data["pointers"]) > 0)
        ready = np.where(done[translated])[0]
        matrix = sparse.vstack([english[whole], foreign[ready]]).tocsr()
        targets = np.concatenate([taught[whole], taught[translated[ready]]])
        table = ridge(matrix, targets, prior, options.strength, options.rounds)
        print("ridge", matrix.shape, round(time.time() - start), "s", flush=True)
        np.savez(options.out, table=table)
        if options.steps == 0:
            return

    taught = unit(taught)
    pairs = data["pairs"]
    pairs = pairs[done[pairs].all(1)]
    ready = np.where(done[translated])[0]
    rng = np.random.default_rng(0)
    neighbours = Neighbours(rng, taught, np.where(done & (np.diff(data["pointers"]) > 1))[0])
    descent = Descent(table, options.rate)
    share_foreign = options.batch // 5
    losses = []
    for number in range(options.steps):
        if rng.random() < options.neighbours:
            left, right = neighbours.draw(rng, options.batch - share_foreign)
        else:
            left, right = pairs[rng.integers(0, len(pairs), options.batch - share_foreign)].T
        other = ready[rng.integers(0, len(ready), share_foreign)]
        meant = translated[other]
        loss, rows, gradient = batch_gradient(
            table,
            sparse.vstack([english[left], foreign[other]]), sparse.vstack([english[right], english[meant]]),
            taught[np.concatenate([left, meant])], taught[np.concatenate([right, meant])], options,
        )
        descent.move(rows, gradient, 1 - number / options.steps)
        losses.append(loss)
        if number % 500 == 499:
            print(number + 1, round(float(np.mean(losses[-500:])), 4), round(time.time() - start), "s", flush=True)
    np.savez(options.out, table=table)


if __name__ == "__main__":
    main()
