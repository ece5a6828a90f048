"""Write the table that the program carries.

    python write_table.py TRAINED.npz VOCABULARY.txt FOLDER OUT.bin [--dim 192] [--english N] [--foreign N] [--runs N]

Rows are turned so that the first numbers of a vector say most, then cut to `dim`, then rounded to bytes:

    bytes     what (numbers are little-endian)
    4         "TGST"
    4         version: 1
    4         d, numbers a row
    4         n, rows
    4         b, bytes of the vocabulary
    n × 4     scale of each row, f32
    n × d     rows, i8; a row is its scale times these
    b         vocabulary, UTF-8, one token a line, each ended by a line feed; line i belongs to row i

The vocabulary is sorted by its bytes, so that it can be searched as it is.
"""

import argparse
import struct

import numpy as np

from train import pooling, unit


def turned(table, folder, dim):
    """The table in the axes of what texts look like in it, the strongest first."""
    data = np.load(f"{folder}/tokens.npz")
    texts = pooling(data["pointers"], data["tokens"], len(table))[::10]
    vectors = unit(texts @ table)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    return table @ axes[:, ::-1][:, :dim]


def kept(vocabulary, sizes):
    """The places of the most frequent tokens of each kind; the vocabulary has them in this order."""
    groups = {"english": [], "foreign": [], "runs": []}
    boundary = sizes["boundary"]
    for place, token in enumerate(vocabulary):
        run = not token.isascii() and any(ord(letter) >= 0x0E00 for letter in token)
        groups["runs" if run else "english" if place < boundary else "foreign"].append(place)
    return sorted(place for name, places in groups.items() for place in places[:sizes[name]])


def quantized(table):
    scales = np.maximum(np.abs(table).max(1), 1e-9) / 127
    return np.round(table / scales[:, None]).clip(-127, 127).astype(np.int8), scales.astype("<f4")


def main():
    parser = argparse.ArgumentParser()
    for name in ("trained", "vocabulary", "folder", "out"):
        parser.add_argument(name)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--boundary", type=int, default=40000, help="English words at the head of the vocabulary")
    for name in ("english", "foreign", "runs"):
        parser.add_argument(f"--{name}", type=int, default=10**9)
    options = parser.parse_args()

    with open(options.vocabulary, encoding="utf8") as file:
        vocabulary = file.read().split("\n")[:-1]
    table = turned(np.load(options.trained)["table"], options.folder, options.dim)
    places = kept(vocabulary, vars(options))
    places.sort(key=lambda place: vocabulary[place].encode())
    tokens = "".join(vocabulary[place] + "\n" for place in places).encode()
    rows, scales = quantized(table[places])
    with open(options.out, "wb") as file:
        file.write(b"TGST" + struct.pack("<4I", 1, options.dim, len(places), len(tokens)))
        file.write(scales.tobytes())
        file.write(rows.tobytes())
        file.write(tokens)
    print(len(places), "rows,", round((20 + len(tokens) + rows.size + 4 * len(places)) / 1e6, 2), "MB")


def read(path):
    """The vocabulary and the table of a file that was written here."""
    with open(path, "rb") as file:
        content = file.read()
    version, dim, count, _ = struct.unpack("<4I", content[4:20])
    if content[:4] != b"TGST" or version != 1:
        raise ValueError("not a table")
    scales = np.frombuffer(content, "<f4", count, 20)
    rows = np.frombuffer(content, np.int8, count * dim, 20 + 4 * count).reshape(count, dim)
    vocabulary = content[20 + 4 * count + count * dim:].decode().split("\n")[:-1]
    return vocabulary, rows.astype(np.float32) * scales[:, None]


if __name__ == "__main__":
    main()
