"""Cut the texts into tokens once, for training.

    python tokenize_corpus.py CORPUS.json VOCABULARY.txt OUT.npz
"""

import json
import sys

import numpy as np

from tokens import Tokenizer

MOST_TOKENS = 128


def cut(tokenizer, texts):
    pointers, tokens = [0], []
    for text in texts:
        tokens.extend(tokenizer.encode(text)[:MOST_TOKENS])
        pointers.append(len(tokens))
    return np.array(pointers, np.int64), np.array(tokens, np.int32)


def main():
    corpus_path, vocabulary_path, out = sys.argv[1:4]
    with open(corpus_path, encoding="utf8") as file:
        corpus = json.load(file)
    with open(vocabulary_path, encoding="utf8") as file:
        vocabulary = file.read().split("\n")[:-1]
    tokenizer = Tokenizer(vocabulary)
    pointers, tokens = cut(tokenizer, corpus["texts"])
    foreign_pointers, foreign_tokens = cut(tokenizer, [text for _, text, _ in corpus["translations"]])
    np.savez(
        out, pointers=pointers, tokens=tokens, foreign_pointers=foreign_pointers, foreign_tokens=foreign_tokens,
        pairs=np.array(corpus["pairs"], np.int32), translated=np.array([place for _, _, place in corpus["translations"]], np.int32),
        unknown=np.array([not token.isascii() for token in vocabulary]),
    )


if __name__ == "__main__":
    main()
