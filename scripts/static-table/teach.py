"""Let the teacher read the texts.

    python teach.py TEACHER.onnx TOKENIZER.json CORPUS.json OUT

Writes OUT.npy (float16, one row of length one a text) and OUT.done.npy (which rows are there). It reads in a random
order and saves now and then, so that a part of the work is already of use.
"""

import json
import sys
import time

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

BATCH = 64


def main():
    model, tokenizer_path, corpus_path, out = sys.argv[1:5]
    tokenizer = Tokenizer.from_file(tokenizer_path)
    tokenizer.enable_truncation(96)
    tokenizer.no_padding()
    with open(corpus_path, encoding="utf8") as file:
        texts = json.load(file)["texts"]
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options)

    order = sorted(range(len(texts)), key=lambda place: len(encoded[place]))
    batches = [order[start:start + BATCH] for start in range(0, len(order), BATCH)]
    np.random.default_rng(0).shuffle(batches := np.array(batches, dtype=object))
    vectors = np.zeros((len(texts), 384), np.float16)
    done = np.zeros(len(texts), bool)
    start = time.time()
    for number, batch in enumerate(batches):
        batch = list(batch)
        longest = max(len(encoded[place]) for place in batch)
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros((len(batch), longest), np.int32)
        for row, place in enumerate(batch):
            ids[row, :len(encoded[place])] = encoded[place]
            mask[row, :len(encoded[place])] = 1
        states = session.run(None, {"ids": ids, "mask": mask})[0]
        means = (states * mask[..., None]).sum(1)
        vectors[batch] = means / np.linalg.norm(means, axis=1, keepdims=True)
        done[batch] = True
        if number % 200 == 0:
            print(number, "of", len(batches), round(time.time() - start), "s", flush=True)
        if number % 1000 == 999 or number == len(batches) - 1:
            np.save(out + ".npy", vectors)
            np.save(out + ".done.npy", done)


if __name__ == "__main__":
    main()
