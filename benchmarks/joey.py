"""JoeyNMT as a peer of benchmarks/prediction.py: it runs in an environment of its own, and answers over a pipe.

    .venv-joeynmt/bin/python benchmarks/joey.py SETTINGS

SETTINGS is JSON: the sizes of the model, whose weights are random, the rows of source ids, the beam, and how many
tokens each output has. For every line on stdin, the rows are searched in sorted batches of 32; CPU seconds come back.
"""

import json
import sys
from time import process_time
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

ROWS = 32
SPECIALS = ("unk", "pad", "bos", "eos")


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    torch.set_num_threads(1)
    special = {f"{name}_{kind}": f"<{name}>" if kind == "token" else n
               for n, name in enumerate(SPECIALS) for kind in ("token", "id")}  # fmt: skip
    tokens = [f"t{i}" for i in range(asked["vocabulary"])]
    vocabulary = Vocabulary(tokens, SimpleNamespace(**special, lang_tags=[], sep_token=None))
    side = {
        "type": "transformer",
        "num_layers": asked["n_layers"],
        "num_heads": asked["n_heads"],
        "hidden_size": asked["d_model"],
        "ff_size": asked["d_ff"],
        "layer_norm": asked["norm"],
        "embeddings": {"embedding_dim": asked["d_model"], "scale": True},
    }
    model = build_model({"encoder": side, "decoder": side, "tied_softmax": True}, vocabulary, vocabulary).eval()
    rows = sorted(([i + len(SPECIALS) for i in row] for row in asked["rows"]), key=len, reverse=True)
    batches = [batch_of(rows[first : first + ROWS], vocabulary) for first in range(0, len(rows), ROWS)]
    for _ in sys.stdin:
        began = process_time()
        with torch.inference_mode():
            for batch in batches:
                lengths = {"max_output_length": asked["written"], "min_output_length": asked["written"]}
                search(model, batch, beam_size=asked["beam"], beam_alpha=asked["alpha"], **lengths)
        print(json.dumps(process_time() - began), flush=True)


def batch_of(rows: list[list[int]], vocabulary: Vocabulary) -> Batch:
    width = max(map(len, rows))
    source = torch.tensor([[*row, *[vocabulary.pad_index] * (width - len(row))] for row in rows])
    return Batch(
        src=source,
        src_length=torch.tensor([len(row) for row in rows]),
        src_prompt_mask=None,
        trg=None,
        trg_prompt_mask=None,
        indices=torch.arange(len(rows)),
        device=torch.device("cpu"),
        pad_index=vocabulary.pad_index,
        eos_index=vocabulary.eos_index,
        is_train=False,
    )


if __name__ == "__main__":
    main()
