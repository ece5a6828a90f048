"""Add what a second teacher says of each word to a table.

    python join_table.py TABLE.bin WORDLLAMA CORPUS.json OUT.bin [--dim 384]

WORDLLAMA is the folder of the unpacked package `wordllama`, a table of pieces of words. The vector of a word is the sum of
those of its pieces. Both tables get the same mean length, and each row of the new table is one row after the other, turned
and cut as `write_table.py` does it: every fourth text of CORPUS says which axes are strong.

The second teacher knows English alone. Words of other languages get what an English word with their row in TABLE would
get, by a linear map that is fitted on the English words.
"""

import argparse
import json
import struct

import numpy as np
from tokenizers import Tokenizer as Pieces

from tokenize_corpus import cut
from tokens import Tokenizer
from train import pooling, unit
from write_table import read, write


def second_teacher(folder, vocabulary):
    """The vector of each word: the sum of its pieces' vectors."""
    with open(f"{folder}/weights/l2_supercat_256.safetensors", "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])["embedding.weight"]
    if header["dtype"] != "F16":
        raise ValueError("the second teacher is stored in another way")
    start, end = (8 + length + offset for offset in header["data_offsets"])
    rows = np.frombuffer(content[start:end], np.float16).reshape(header["shape"]).astype(np.float32)
    pieces = Pieces.from_file(f"{folder}/tokenizers/l2_supercat_tokenizer_config.json")
    encoded = pieces.encode_batch(vocabulary, add_special_tokens=False)
    return np.stack([rows[encoding.ids].sum(0) for encoding in encoded])


def is_foreign(vocabulary, texts, translations):
    """Which words only translations have, or hardly any English text."""
    (_, here), (_, elsewhere) = texts, translations
    here, elsewhere = (np.bincount(tokens, minlength=len(vocabulary)) for tokens in (here, elsewhere))
    return ~np.array([word.isascii() for word in vocabulary]) | (elsewhere > 5) & (here < 0.2 * elsewhere)


def mapped(first, second, foreign, strength=1e-3):
    """The second table, with the rows of foreign words as the first one lets expect them."""
    known, wanted = first[~foreign], second[~foreign]
    fit = np.linalg.solve(known.T @ known + strength * len(known) * np.eye(first.shape[1]), known.T @ wanted)
    joined = second.copy()
    joined[foreign] = first[foreign] @ fit
    # A regression makes vectors shorter.
    lengths = np.linalg.norm(wanted, axis=1).mean() / np.linalg.norm(known @ fit, axis=1).mean()
    joined[foreign] *= lengths
    return joined


def same_length(table):
    """The table, with rows of the length one on average."""
    return table / np.linalg.norm(table, axis=1).mean()


def main():
    parser = argparse.ArgumentParser()
    for name in ("table", "wordllama", "corpus", "out"):
        parser.add_argument(name)
    parser.add_argument("--dim", type=int, default=384)
    options = parser.parse_args()

    vocabulary, first = read(options.table)
    tokenizer = Tokenizer(vocabulary)
    with open(options.corpus, encoding="utf8") as file:
        corpus = json.load(file)
    texts = cut(tokenizer, corpus["texts"][::4])
    translations = cut(tokenizer, [text for _, text, _ in corpus["translations"][::4]])
    foreign = is_foreign(vocabulary, texts, translations)
    first, second = same_length(first), same_length(second_teacher(options.wordllama, vocabulary))
    table = np.concatenate([first, mapped(first, second, foreign)], axis=1).astype(np.float32)
    print(foreign.sum(), "words of other languages")
    vectors = unit(pooling(*texts, len(vocabulary)) @ table)
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    write(options.out, vocabulary, table @ axes[:, ::-1][:, :options.dim])


if __name__ == "__main__":
    main()
