"""Write the teacher (a BERT encoder with 12 heads, as safetensors) as an ONNX graph with fused attention, in bytes.

    python export_teacher.py MODEL.safetensors OUT

Writes OUT.onnx and OUT.int8.onnx. The graph takes `ids` (int64) and `mask` (int32), both texts × tokens, and gives the
last hidden states.
"""

import json
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

HEADS = 12
EPSILON = 1e-12
MICROSOFT = "com.microsoft"


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    types = {"F32": np.float32, "I64": np.int64}
    weights = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            weights[name] = np.frombuffer(content[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return weights


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output


def embeddings(graph, weights):
    graph.constant("words", weights["embeddings.word_embeddings.weight"])
    # There is one kind of text only, so its vector is added to those of the places once and for all.
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    graph.constant("places", places)
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("one", np.array([1], np.int64))
    graph.node("Gather", ["words", "ids"], "word_vectors")
    graph.node("Shape", ["ids"], "shape")
    graph.node("Gather", ["shape", "one"], "length")
    graph.node("Slice", ["places", "zero", "length", "zero"], "place_vectors")
    graph.node("Add", ["word_vectors", "place_vectors"], "sums")
    graph.constant("gain", weights["embeddings.LayerNorm.weight"])
    graph.constant("bias", weights["embeddings.LayerNorm.bias"])
    return graph.node("LayerNormalization", ["sums", "gain", "bias"], "embedded", epsilon=EPSILON, axis=-1)


def layer(graph, weights, number, states):
    def weight(name):
        return weights[f"encoder.layer.{number}.{name}"]

    def constant(name, value):
        return graph.constant(f"{name}_{number}", value)

    def dense(states, name):
        matrix = constant(name + ".weight", weight(name + ".weight").T)
        bias = constant(name + ".bias", weight(name + ".bias"))
        return graph.node("MatMul", [states, matrix], f"{name}_{number}"), bias

    def add_and_norm(states, before, name, bias):
        gain = constant(name + ".gain", weight(name + ".weight"))
        offset = constant(name + ".offset", weight(name + ".bias"))
        inputs = [states, before, gain, offset, bias]
        return graph.node("SkipLayerNormalization", inputs, f"{name}_{number}", domain=MICROSOFT, epsilon=EPSILON)

    parts = ("query", "key", "value")
    matrix = constant("attention", np.concatenate([weight(f"attention.self.{part}.weight").T for part in parts], 1))
    bias = constant("attention_bias", np.concatenate([weight(f"attention.self.{part}.bias") for part in parts]))
    inputs = [states, matrix, bias, "mask"]
    seen = graph.node("Attention", inputs, f"seen_{number}", domain=MICROSOFT, num_heads=HEADS)
    seen, bias = dense(seen, "attention.output.dense")
    states = add_and_norm(seen, states, "attention.output.LayerNorm", bias)
    inner, bias = dense(states, "intermediate.dense")
    inner = graph.node("BiasGelu", [inner, bias], f"inner_{number}", domain=MICROSOFT)
    inner, bias = dense(inner, "output.dense")
    return add_and_norm(inner, states, "output.LayerNorm", bias)


def main():
    source, out = sys.argv[1:3]
    weights = read_safetensors(source)
    graph = Graph()
    states = embeddings(graph, weights)
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    for number in range(len(layers)):
        states = layer(graph, weights, number, states)
    width = weights["embeddings.LayerNorm.bias"].shape[0]
    shape = ["texts", "tokens"]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, shape),
              helper.make_tensor_value_info("mask", TensorProto.INT32, shape)]
    outputs = [helper.make_tensor_value_info(states, TensorProto.FLOAT, shape + [width])]
    whole = helper.make_graph(graph.nodes, "teacher", inputs, outputs, graph.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])
    model.ir_version = 8
    onnx.save(model, out + ".onnx")
    options = {"DefaultTensorType": TensorProto.FLOAT, "MatMulConstBOnly": True}
    quantize_dynamic(out + ".onnx", out + ".int8.onnx", weight_type=QuantType.QInt8,
                     op_types_to_quantize=["MatMul", "Attention"], extra_options=options)


if __name__ == "__main__":
    main()
