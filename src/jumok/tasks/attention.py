"""Attention maps with their tokens, and one head of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jumok import html
from jumok.engines import Array, Engine
from jumok.errors import InputError, nearest
from jumok.text.tokenizer import Tokenizer

CROSS = "cross"


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention maps `weights[layer, head, row, column]`, with the tokens of rows and columns."""

    rows: list[str]
    columns: list[str]
    weights: Array

    def _repr_html_(self) -> str:
        """Show the mean over layers and heads in a notebook."""
        layers, heads = self.weights.shape[:2]
        mean = self.weights.mean(axis=(0, 1)).tolist()
        about = html.line(f"mean of {layers} layers and {heads} heads: weights[layer, head] has each", small=True)
        return html.block(html.matrix(self.rows, self.columns, mean), about)


@dataclass(frozen=True, slots=True)
class Head:
    """One head, or the mean or maximum of a layer's; layers and heads are counted from 1, as on the page."""

    map: str
    layer: int
    head: str
    source: list[str]
    target: list[str]
    weights: list[list[float]]

    @property
    def title(self) -> str:
        return f"{self.map}, layer {self.layer}, {f'head {self.head}' if self.head.isdecimal() else self.head}"


def maps_of(engine: Engine, tokenizer: Tokenizer, row: Sequence[int]) -> dict[str, Attention]:
    """Maps of a model that reads a row: `self`, every layer and head of a Transformer, or `pool`, the weights that a
    recurrent network pools its states with."""
    found = engine.attention(row)
    tokens = tokenizer.pieces([tokenizer.start_id, *row] if engine.kind == "gpt" else row)
    return {name: Attention(tokens if name == "self" else [""], tokens, maps) for name, maps in found.items()}


def one_head(
    maps: Mapping[str, Attention], *, name: str | None = None, layer: int | None = None, head: str | None = None
) -> Head:
    """One head of a map: by default the mean of the last layer, and of a translation the attention to the source."""
    name = name or (CROSS if CROSS in maps else next(iter(maps)))
    if name not in maps:
        hint = nearest(name, maps) or f"use {' or '.join(maps)}"
        raise InputError(f"the model has no map {name}", where="--map", hint=hint, code="input.no_such_part")
    found = maps[name]
    layers, heads = found.weights.shape[:2]
    layer, head = layers if layer is None else layer, "mean" if head is None else head
    if not 1 <= layer <= layers:
        what, hint = f"there is no layer {layer} of {name}", f"use {_range('a layer', layers)}"
        raise InputError(what, where="--layer", hint=hint, code="input.no_such_part")
    of_layer = found.weights[layer - 1]
    match head:
        case "mean":
            weights = of_layer.mean(axis=0)
        case "max":
            weights = of_layer.max(axis=0)
        case _ if head.isdecimal() and 1 <= int(head) <= heads:
            weights = of_layer[int(head) - 1]
        case _:
            what, hint = f"there is no head {head} of {name}", f"use {_range('a head', heads)}, or mean or max"
            raise InputError(what, where="--head", hint=hint, code="input.no_such_part")
    rounded = [[round(float(weight), 4) for weight in row] for row in weights]
    return Head(name, layer, head, found.columns, found.rows, rounded)


def _range(thing: str, n: int) -> str:
    return f"{thing} from 1 to {n}" if n > 1 else "1, the only one"
