"""Build RUN/engine: the model for the fast engine, in the smallest form that costs no quality.

float32 gives the outputs of the reference. int8 is faster and slightly different, as is a shortlist of the vocabulary
that a translator chooses from: each is scored on dev beside float32, and kept if it loses less than `engine.max_loss`.
"""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from shutil import copytree, ignore_patterns
from time import process_time
from typing import Any

from safetensors.torch import save_file

from jumok.data.corpus import Corpus
from jumok.engines import Done, nobody
from jumok.engines.fast_folder import (
    BODY,
    HEADS,
    LIBRARIES,
    Built,
    Compute,
    Trial,
    engine_folder,
    library_version,
    model_digest,
    read_engine,
    store_engine,
)
from jumok.engines.fast_work import WIDTH, Layout, saturates, this_machine
from jumok.engines.shortlist import VOCABULARY_MAP, Shortlist, learn_shortlist
from jumok.errors import CheckpointError, JumokError
from jumok.examples import Split
from jumok.files import MANIFEST
from jumok.hub.files import model_folder
from jumok.hub.folder import ModelFolder
from jumok.models.bert import BertConfig
from jumok.models.build import ModelConfig
from jumok.models.seq2seq import Seq2SeqConfig
from jumok.predictor import open_fast, why_not_fast
from jumok.recipe import Recipe, recipe_of_run
from jumok.tasks import task_named
from jumok.tasks.stored import read_model
from jumok.train.folder import RunFolder
from jumok.train.loop import LOWER_IS_BETTER

EXAMPLES = 1000
"""of dev that a form of the model is scored on"""
WORTH = 2000
"""tokens of a vocabulary from which on a shortlist saves time"""
SHORTLISTS = (20, 50)
"""target tokens for each source token; more do not make the output layer smaller any more"""
WIDTHS = (32, 64, 128, 256)
"""numbers of hypotheses in a batch that are tried, each twice"""
CALIBRATION = 4.0
"""seconds of a processor after which no more are tried"""
PAIRS = 50_000
"""of training that a shortlist is learned from, at most"""


def unsuited(config: ModelConfig) -> str | None:
    """Why only the reference engine can run such a model."""
    if isinstance(config, BertConfig):
        return None
    if isinstance(config, Seq2SeqConfig):
        return "this processor has no fast products of bytes (VNNI)" if saturates() else None
    from jumok.engines.fast_specs import unsuited

    return unsuited(config)


def build_engine(run: Path, *, done: Done = nobody) -> Built:
    """Build RUN/engine from RUN/model, measured on the run's dev data if that can be read.

    Raises a CheckpointError if only the reference can run the model.
    """
    path = model_folder(run)
    model = read_model(path)
    if reason := unsuited(model.config):
        raise CheckpointError(f"only the reference engine runs this model: {reason}", where=path, code="engine.none")
    recipe = _recipe_of(run)
    plain = Built(
        kind=model.config.kind,
        longest=getattr(model.config, "longest", None),
        attends=bool(getattr(model.config, "attends", False)),
        facts=model.facts,
        **_head(model),
        library=library_version(model.config.kind),
        model=model_digest(path),
    )
    dev = _examples(recipe, "dev", EXAMPLES) if recipe is not None else []
    if recipe is None or not dev or recipe.kind.learns_from_text == "masked":
        _store(engine_folder(path), plain, model)
        return plain
    with tempfile.TemporaryDirectory(dir=run, prefix=".engine-") as beside:
        return _Trials(path, model, recipe, dev, Path(beside), done).best(plain)


def _head(model: ModelFolder) -> dict[str, Any]:
    """What has to be known of a BERT's head."""
    if not isinstance(model.config, BertConfig):
        return {}
    kind, config = task_named(model.facts["task"]["kind"]), model.facts["task"]
    asks = kind.head(config, kind.read_facts(model.facts)).asks
    c = model.config
    return {"asks": asks, "activation": c.activation, "norm_eps": c.norm_eps, "pooling": c.pooling}


def build_after(run: Path, done: Done) -> str:
    """Build RUN/engine at the end of training; whatever stands in the way, the run has its model."""
    try:
        path = model_folder(run)
        if (reason := why_not_fast([path])) is None:
            return str(build_engine(run, done=done))
    except (JumokError, OSError) as error:
        reason = str(error)
    return f"torch: {reason}"


def engine_of(run: Path) -> str:
    """The engine that predicts with a run, and why."""
    path = model_folder(run)
    reason = why_not_fast([path]) or unsuited(read_model(path).config)
    try:
        if reason is None:
            return str(read_engine(engine_folder(path), path)[0])
    except CheckpointError as error:
        reason = f"the fast engine is built by the first `jumok predict` ({error.what})"
    return f"torch: {reason}"


def _store(folder: Path, built: Built, model: ModelFolder, shortlist: Shortlist | None = None) -> None:
    def write(building: Path) -> None:
        if built.kind == "bert":
            _write_bert(building, built, model)
        if LIBRARIES[built.kind] != "ctranslate2":  # torch rounds the model's weights when it opens them
            return
        from jumok.engines.fast_specs import write_spec

        write_spec(model, building, quantization=None if built.compute == "float32" else built.compute)
        if shortlist is not None:
            words = (each.pieces(range(each.vocab_size)) for each in (model.tokenizers.source, model.tokenizers.target))
            shortlist.write(building / VOCABULARY_MAP, *words)

    store_engine(folder, built, model.tokenizers, write)


def _write_bert(building: Path, built: Built, model: ModelFolder) -> None:
    """The body as a graph, and the tensors of its head."""
    from jumok.engines.onnx_graph import write_graph

    write_graph(model, building / BODY, int8=built.compute == "int8", first_only=built.asks == "text")
    body = ("bert.stack.", "bert.positions.", "bert.segments.", "bert.norm.", "bert.widen.")
    own = {name: tensor for name, tensor in model.tensors.items() if not name.startswith(body)}
    if built.asks != "masked":  # which predicts tokens with their embeddings
        own.pop("bert.embedding.weight", None)
    save_file(own if built.asks != "nothing" else {}, building / HEADS)


class _Trials:
    """Forms of one model, scored on the same examples."""

    def __init__(
        self, path: Path, model: ModelFolder, recipe: Recipe, dev: Sequence[Any], beside: Path, done: Done
    ) -> None:
        self.path, self.model, self.recipe, self.dev, self.beside, self.done = path, model, recipe, dev, beside, done
        names = recipe.kind.metrics(recipe.task)
        self.metric = next((name for name in names if name not in LOWER_IS_BETTER), names[0])
        self.outputs: list[str] = []
        """of the form that was scored last"""

    def best(self, plain: Built) -> Built:
        """Keep the first form, fastest first, that loses less than is allowed; else float32."""
        base = self.score(plain)
        exact = self.outputs
        trials: list[Trial] = []
        for compute, shortlist in self.forms():
            form = replace(plain, compute=compute, shortlist=shortlist)
            score = self.score(form)
            loss = 100 * (score / base - 1) if self.metric in LOWER_IS_BETTER else base - score
            kept = loss < self.recipe.engine.max_loss
            trial = Trial(
                compute=compute,
                shortlist=shortlist,
                metric=self.metric,
                score=round(score, 4),
                loss=round(loss, 4),
                differ=round(share_of_differing(exact, self.outputs), 4),
                kept=kept,
            )
            trials.append(trial)
            if kept:
                return self.keep(form, trials)
        return self.keep(plain, trials)

    def keep(self, form: Built, trials: list[Trial]) -> Built:
        """Copy what was scored to its place."""
        built = replace(form, trials=trials, examples=len(self.dev), width=self.width(form), machine=this_machine())

        def write(building: Path) -> None:
            copytree(self.folder(form), building, ignore=ignore_patterns(MANIFEST), dirs_exist_ok=True)

        store_engine(engine_folder(self.path), built, self.model.tokenizers, write)
        return built

    def folder(self, form: Built) -> Path:
        return self.beside / f"{form.compute}-{form.shortlist}"

    def width(self, form: Built) -> int | None:
        """The number of hypotheses in a batch that computes texts of dev fastest here; None if all are slow."""
        if LIBRARIES[form.kind] != "ctranslate2":
            return None
        some, seconds = self.dev[: max(WIDTHS)], dict[int, float]()
        usual = WIDTH[form.compute]
        for width in (usual, *(width for width in WIDTHS if width != usual)):
            predictor = open_fast(self.path, self.folder(form), layout=Layout(1, width))
            predictor.predict(some[:8])
            seconds[width] = min(_seconds(predictor, some), _seconds(predictor, some))
            if 2 * sum(seconds.values()) > CALIBRATION:
                break
        return min(seconds, key=seconds.__getitem__) if len(seconds) > 1 else None

    def forms(self) -> list[tuple[Compute, int]]:
        sizes = SHORTLISTS if self.model.config.kind == "transformer" and self.shortlist is not None else ()
        return [*(("int8", n) for n in sizes), ("int8", 0), *(("float32", n) for n in sizes)]

    @cached_property
    def shortlist(self) -> Shortlist | None:
        """Learned from the run's training texts, if they can be read."""
        tokenizers = self.model.tokenizers
        if self.recipe.kind.name != "translation" or tokenizers.target.vocab_size < WORTH:
            return None
        pairs = _examples(self.recipe, "train", PAIRS)
        encoded = zip(
            tokenizers.source.encode_batch([pair.source for pair in pairs]),
            tokenizers.target.encode_batch([pair.gold for pair in pairs], sources=[pair.source for pair in pairs]),
            strict=True,
        )
        if not pairs:
            return None
        size, slots = tokenizers.target.vocab_size, tokenizers.target.slot_ids
        return learn_shortlist(encoded, SHORTLISTS[-1], target_vocab=size, always=slots)

    def score(self, form: Built) -> float:
        shortlist = self.shortlist.first(form.shortlist) if self.shortlist and form.shortlist else None
        _store(self.folder(form), form, self.model, shortlist)
        predictor = open_fast(self.path, self.folder(form))
        predictor.engine.between = self.done
        measured = predictor.measure(self.dev)
        self.outputs = measured.outputs
        found: dict[str, float] = measured.metrics.values(self.metric)
        return found[self.metric]


def share_of_differing(exact: Sequence[str], others: Sequence[str]) -> float:
    """Of outputs for the same examples; 0 if the task has no outputs."""
    return sum(a != b for a, b in zip(exact, others, strict=True)) / max(len(exact), 1)


def _seconds(predictor: Any, examples: Sequence[Any]) -> float:
    began = process_time()
    predictor.predict(examples)
    return process_time() - began


def _recipe_of(run: Path) -> Recipe | None:
    stored = RunFolder(run).stored()
    return None if stored is None else recipe_of_run(stored["recipe"], run / "recipe.json")


def _examples(recipe: Recipe, split: Split, most: int) -> list[Any]:
    """At most so many examples; none if the data is not there any more."""
    with suppress(JumokError, OSError):
        corpus: Corpus[Any] = Corpus(recipe.data, split, seed=recipe.seed)
        return list(islice(corpus, most)) if corpus.exists() else []
    return []
