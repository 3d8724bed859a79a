"""The graph of a BERT body for ONNX Runtime, written operator by operator; `jumok.engines.onnx` runs it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from jumok.engines.fast_work import saturates

if TYPE_CHECKING:
    from jumok.hub.folder import ModelFolder
    from jumok.models.bert import BertConfig

Floats = NDArray[np.float32]
CONTRIB = "com.microsoft"
LOWEST = {"relu": 0.0, "gelu": -0.17, "gelu_tanh": -0.1701, "silu": -0.2785}
"""no value of an activation is below; so a token's range needs its maximum only"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The input of linear layers: as it is, or as bytes, which are `zero + steps * x / most` of each token."""

    x: str
    steps: str = ""
    zero: str = ""
    most: str = ""


def write_graph(
    model: "ModelFolder", path: Path, *, int8: bool, first_only: bool = False, narrow: bool | None = None
) -> None:
    """Write the body of a BERT model: ids and segments [B, S] int32, rows of one length, to states [B, S, D].

    With `first_only`, the last layer computes the state of `[CLS]` alone [B, 1, D]. `narrow` weights have 7 bits
    instead of 8; by default, where the processor needs them.
    """
    from jumok.models.bert import BertConfig

    c = model.config
    assert isinstance(c, BertConfig)
    tensors = {name.removeprefix("bert."): tensor.float().numpy() for name, tensor in model.tensors.items()}
    graph = _Graph(c, tensors, int8, 63 if (saturates() if narrow is None else narrow) else 127)
    x = graph.embed()
    for i in range(c.n_layers):
        x = graph.layer(x, i, first_only=first_only and i == c.n_layers - 1)
    facts: dict[str, object] = {
        "int8": int8,
        "first_only": first_only,
        "longest": c.max_len,
        "d_model": c.d_model,
        "n_segments": max(min(c.n_segments, 1 + model.tokenizers.source.second_segment), 1),
        "end_id": model.tokenizers.source.end_id,
    }
    onnx.save(graph.finish(x, facts), path)


@dataclass(slots=True)
class _Graph:
    """Nodes and weights so far. Values are named by the node that computes them."""

    c: "BertConfig"
    tensors: dict[str, Floats]
    int8: bool
    top: int
    """largest weight in int8"""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def add(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> list[str]:
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, name: str, value: object, dtype: type = np.float32) -> str:
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name)
        return name

    def tensor(self, name: str) -> str:
        return self.constant(name, self.tensors[name])

    def norm(self, x: str, name: str) -> str:
        weight, bias = self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias")
        return self.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=self.c.norm_eps)[0]

    def embed(self) -> str:
        positions = self.constant("positions.weight", self.tensors["positions.weight"][self.c.first_position :])
        none = np.zeros((1, self.c.width), dtype=np.float32)
        segments = self.constant("segments.weight", self.tensors.get("segments.weight", none))
        tables = [self.tensor("embedding.weight"), positions, segments]
        norm = [self.tensor("norm.weight"), self.tensor("norm.bias")]
        x = self.add(
            "EmbedLayerNormalization",
            *("ids", "segments", *tables, *norm),
            outputs=2,
            domain=CONTRIB,
            epsilon=self.c.norm_eps,
        )[0]
        return x if self.c.width == self.c.d_model else self.affine(self.seen(x), "widen")

    def layer(self, x: str, i: int, *, first_only: bool) -> str:
        """A post-norm layer: x = LayerNorm(x + Sublayer(x)), twice."""
        at = f"stack.layers.{i}"
        seen = self.seen(x)
        asking = seen
        if first_only:
            ends = [self.constant(f"slice.{n}", [n], np.int64) for n in (0, 1)]
            x = self.add("Slice", x, *ends, ends[1])[0]
            asking = self.seen(x)
        y = self.attention(asking, seen, f"{at}.self_attention")
        x = self.norm(self.add("Add", y, x)[0], f"{at}.self_norm")
        y = self.feed_forward(x, f"{at}.feed_forward")
        return self.norm(self.add("Add", y, x)[0], f"{at}.feed_norm")

    def attention(self, asking: _Seen, seen: _Seen, at: str) -> str:
        names = [f"{at}.w_q", f"{at}.w_k", f"{at}.w_v"]
        parts = [self.linear(part, name) for part, name in zip((asking, seen, seen), names, strict=True)]
        bias = self.constant(f"{at}.bias", np.concatenate([self.tensors[f"{name}.bias"] for name in names]))
        context = self.add("MultiHeadAttention", *parts, bias, domain=CONTRIB, num_heads=self.c.n_heads)[0]
        return self.affine(self.seen(context), f"{at}.w_o")

    def feed_forward(self, x: str, at: str) -> str:
        activation = self.c.activation
        if activation in ("gelu", "gelu_tanh"):
            kind = "BiasGelu" if activation == "gelu" else "FastGelu"
            y = self.add(kind, self.linear(self.seen(x), f"{at}.w_1"), self.tensor(f"{at}.w_1.bias"), domain=CONTRIB)[0]
        else:
            y = self.affine(self.seen(x), f"{at}.w_1")
            y = self.add("Relu", y)[0] if activation == "relu" else self.add("Mul", y, self.add("Sigmoid", y)[0])[0]
        return self.affine(self.seen(y, LOWEST[activation]), f"{at}.w_2")

    def affine(self, seen: _Seen, name: str) -> str:
        return self.add("Add", self.linear(seen, name), self.tensor(f"{name}.bias"))[0]

    def linear(self, seen: _Seen, name: str) -> str:
        """x W^T"""
        if not self.int8:
            return self.add("MatMul", seen.x, self.constant(f"{name}.weight", self.tensors[f"{name}.weight"].T))[0]
        inputs = (seen.x, self.weight(name), seen.steps, f"{name}.scale", seen.zero)
        return self.add("Mul", self.add("MatMulIntegerToFloat", *inputs, domain=CONTRIB)[0], seen.most)[0]

    def seen(self, x: str, lowest: float | None = None) -> _Seen:
        """Divide each token by its largest absolute value; bytes reach from that value's negative to itself.

        With a lower bound, the maximum is enough: bytes reach from a third below zero to the maximum, which counts as
        three times the bound if it is smaller.
        """
        if not self.int8:
            return _Seen(x)
        last = self.constant("last", [-1], np.int64)
        bounded = lowest is not None
        floor = self.constant(f"floor.{bounded}", max(-3 * (lowest or 0), 1e-9))
        ends = [self.add("ReduceMax", x, last)[0]]
        if not bounded:
            ends.append(self.add("Neg", self.add("ReduceMin", x, last)[0])[0])
        most = self.add("Max", *ends, floor)[0]
        zero, steps = (64, 191) if bounded else (128, 127)
        step, zero_point = self.constant(f"step.{bounded}", 1 / steps), self.constant(f"zero.{bounded}", zero, np.uint8)
        share = self.add("Mul", x, self.add("Reciprocal", most)[0])[0]
        return _Seen(self.add("QuantizeLinear", share, step, zero_point)[0], step, zero_point, most)

    def weight(self, name: str) -> str:
        """The weights of a linear layer, transposed, in int8; beside them, a scale for each output."""
        weight = self.tensors[f"{name}.weight"]
        scale = np.abs(weight).max(axis=1).clip(1e-12) / self.top
        self.constant(f"{name}.scale", scale)
        return self.constant(f"{name}.weight", np.rint(weight / scale[:, None]).T, np.int8)

    def finish(self, states: str, facts: dict[str, object]) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, ["B", "S"]) for name in ("ids", "segments")]
        output = helper.make_tensor_value_info(states, TensorProto.FLOAT, ["B", None, self.c.d_model])
        graph = helper.make_graph(self.nodes, "bert", inputs, [output], list(self.weights.values()))
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
        written = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="jumok")
        helper.set_model_props(written, {"jumok": json.dumps(facts)})
        return written
