"""CTranslate2 as a peer of benchmarks/prediction.py, in a process of its own, where it chooses its instructions itself.

    python benchmarks/library.py SETTINGS

SETTINGS is JSON: the folder, whether it holds a Translator or a Generator, the type it computes in, the tokens of all
texts and the arguments of its method. For every line on stdin, the texts are read once; CPU seconds come back.
"""

import json
import sys
from time import process_time

import ctranslate2


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    kind = getattr(ctranslate2, asked["kind"])
    model = kind(asked["folder"], compute_type=asked["compute"], inter_threads=1, intra_threads=1)
    method = model.translate_batch if asked["kind"] == "Translator" else model.generate_batch
    for _ in sys.stdin:
        began = process_time()
        method(asked["pieces"], **asked["settings"])
        print(process_time() - began, flush=True)


if __name__ == "__main__":
    main()
