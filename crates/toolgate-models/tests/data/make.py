"""Makes the tiny random models of the tests, and what an implementation in numpy gives for some texts.

    python3 -m venv v && v/bin/pip install numpy tokenizers && v/bin/python make.py

It shares no code with the program: where both agree, both are right.
"""
import json, math, os, struct
import numpy as np
from tokenizers import Tokenizer

here = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(20260)
LAYERS, WIDTH, INNER, HEADS, POSITIONS = 2, 32, 64, 4, 40
EPSILON = 1e-12
words = "send read write delete list file files mail letter weather rain today the a to of in new user team".split()
pieces = [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + ["##ing", "##er", "##s"]
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + words + list("abcdefghijklmnopqrstuvwxyz:,.") + pieces
ids = {token: place for place, token in enumerate(vocabulary)}
texts = ["send a letter to the team", "Delete files", "weather: rain today, rain", "unsendable", "", "漢字 a",
         "the new user of a file " * 20]


def tokenizer(special):
    template = [{"Sequence": {"id": "A", "type_id": 0}}]
    if special:
        mark = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
        template = [mark("[CLS]")] + template + [mark("[SEP]")]
    return {
        "version": "1.0",
        # Padding and truncation as model hubs have them; the program does not want them.
        "truncation": {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": [{"id": place, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for place, token in enumerate(vocabulary[:4])],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": template, "pair": template, "special_tokens": {
            name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": ids},
    }


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind = {"float32": "F32", "float16": "F16", "int64": "I64"}[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write(folder, name, content):
    path = os.path.join(here, folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(content, file, ensure_ascii=False)


def encoded(special, text, most):
    made = Tokenizer.from_str(json.dumps(tokenizer(special)))
    made.no_padding()
    made.enable_truncation(most)
    return made.encode(text, add_special_tokens=special).ids


def bert():
    def number(*shape):
        return (random.standard_normal(shape) * 0.2).astype(np.float32)

    tensors = {"embeddings.word_embeddings.weight": number(len(vocabulary), WIDTH) * 3,
               "embeddings.position_embeddings.weight": number(POSITIONS, WIDTH),
               "embeddings.token_type_embeddings.weight": number(2, WIDTH)}
    def norm(name):
        tensors[name + ".weight"] = 1 + number(WIDTH)
        tensors[name + ".bias"] = number(WIDTH)
    def linear(name, given, wanted):
        tensors[name + ".weight"] = number(wanted, given)
        tensors[name + ".bias"] = number(wanted)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        start = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            linear(start + "attention.self." + part, WIDTH, WIDTH)
        linear(start + "attention.output.dense", WIDTH, WIDTH)
        norm(start + "attention.output.LayerNorm")
        linear(start + "intermediate.dense", WIDTH, INNER)
        linear(start + "output.dense", INNER, WIDTH)
        norm(start + "output.LayerNorm")
    # Saved as a model with a head is: with a word before every name.
    save(os.path.join(here, "bert", "model.safetensors"), {"bert." + name: tensor for name, tensor in tensors.items()})
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def apply_norm(name, states):
        centred = states - states.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + EPSILON)
        return scaled * weights[name + ".weight"] + weights[name + ".bias"]
    def apply(name, states):
        return states @ weights[name + ".weight"].T + weights[name + ".bias"]
    erf = np.vectorize(math.erf)

    def forward(tokens):
        states = weights["embeddings.word_embeddings.weight"][tokens]
        states = states + weights["embeddings.position_embeddings.weight"][:len(tokens)]
        states = apply_norm("embeddings.LayerNorm", states + weights["embeddings.token_type_embeddings.weight"][0])
        for layer in range(LAYERS):
            start = f"encoder.layer.{layer}."
            split = lambda x: x.reshape(len(tokens), HEADS, WIDTH // HEADS).transpose(1, 0, 2)
            query, key, value = (split(apply(start + "attention.self." + part, states)) for part in ("query", "key", "value"))
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            attended = (scores @ value).transpose(1, 0, 2).reshape(len(tokens), WIDTH)
            states = apply_norm(start + "attention.output.LayerNorm", states + apply(start + "attention.output.dense", attended))
            inner = apply(start + "intermediate.dense", states)
            inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
            states = apply_norm(start + "output.LayerNorm", states + apply(start + "output.dense", inner))
        return states

    golden = []
    for text in texts:
        states = forward(encoded(True, text, 24))
        unit = lambda v: [round(float(x), 7) for x in v / np.linalg.norm(v)]
        golden.append({"text": text, "mean": unit(states.mean(0)), "first": unit(states[0]), "max": unit(states.max(0))})
    write("bert", "golden.json", golden)
    write("bert", "tokenizer.json", tokenizer(True))
    write("bert", "config.json", {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": WIDTH,
        "intermediate_size": INNER, "layer_norm_eps": EPSILON, "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "vocab_size": len(vocabulary)})
    write("bert", "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    kind = "sentence_transformers.models."
    write("bert", "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": kind + "Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": kind + "Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": kind + "Normalize"}])
    write("bert/1_Pooling", "config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False,
                                            "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False})


def static():
    rows = random.standard_normal((40, 16)).astype(np.float16)
    counts = random.uniform(0.5, 2, len(vocabulary)).astype(np.float32)
    mapping = random.integers(0, 40, len(vocabulary))
    save(os.path.join(here, "static", "model.safetensors"), {"embeddings": rows, "weights": counts, "mapping": mapping})
    golden = []
    for text in texts:
        tokens = [token for token in encoded(False, text, 512) if token != ids["[UNK]"]] or [ids["[UNK]"]]
        total = sum(rows[mapping[token]].astype(np.float64) * counts[token] for token in tokens)
        golden.append({"text": text, "mean": [round(float(x), 7) for x in total / np.linalg.norm(total)]})
    write("static", "golden.json", golden)
    write("static", "tokenizer.json", tokenizer(False))
    write("static", "config.json", {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True})


for folder in ("bert", "static"):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
bert()
static()
