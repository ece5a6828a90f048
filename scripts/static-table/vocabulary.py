"""Choose the vocabulary of the table.

    python vocabulary.py CORPUS.json TEACHER_VOCABULARY.txt OUT.txt [ENGLISH FOREIGN RUNS]

Words of the English texts, words of the translations, and entries for scripts without blanks. The numbers say how many
of each are taken at most. OUT.json is the same as texts for `teach.py`.
"""

import collections
import json
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tokens import words

ENGLISH, FOREIGN, RUNS = 24000, 6000, 5000


def main():
    corpus_path, teacher_path, out = sys.argv[1:4]
    sizes = [int(size) for size in sys.argv[4:7]] or [ENGLISH, FOREIGN, RUNS]
    most_english, most_foreign, most_runs = sizes
    with open(corpus_path, encoding="utf8") as file:
        corpus = json.load(file)

    english, foreign, runs = collections.Counter(), collections.Counter(), collections.Counter()
    for text in corpus["texts"]:
        english.update({word for word, is_run in words(text) if not is_run and not word.isnumeric()})
    for _, text, _ in corpus["translations"]:
        found = set(words(text))
        foreign.update(word for word, is_run in found if not is_run and not word.isnumeric())
        runs.update(word for word, is_run in found if is_run)

    # What the teacher has as one piece is a common word even where these texts do not have it.
    common = {line.strip() for line in open(teacher_path, encoding="utf8")}
    common = {word for word in common if word.isascii() and word.isalpha() and len(word) > 2}
    ranked = {word: count + (3 if word in common else 0) for word, count in english.items() if len(word) <= 24}
    ranked.update({word: 3 for word in common if word not in english})
    chosen = [word for word, count in sorted(ranked.items(), key=lambda item: (-item[1], item[0])) if count >= 3]
    chosen = chosen[:most_english]
    taken = set(chosen)
    others = [word for word, count in foreign.most_common() if word not in taken and count >= 5 and len(word) > 1]
    chosen += others[:most_foreign]
    taken = set(chosen)

    chosen += [entry for entry in entries(runs, most_runs) if entry not in taken and len(entry) <= 6]
    with open(out, "w", encoding="utf8") as file:
        file.write("\n".join(chosen) + "\n")
    with open(out.removesuffix(".txt") + ".json", "w", encoding="utf8") as file:
        json.dump({"texts": chosen}, file)
    print(len(chosen), "tokens; least frequent English word", ranked[chosen[min(most_english, len(chosen)) - 1]])


def entries(counts, most):
    """Characters, and strings of them that are often together."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=most, show_progress=False, min_frequency=3)
    repeated = (word for word, count in counts.items() for _ in range(min(count, 50)))
    tokenizer.train_from_iterator(repeated, trainer)
    found = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [entry for entry, _ in found]


if __name__ == "__main__":
    main()
