"""Preparing text that models learn to judge: classes, tags, relations, answers, choices."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jumok.data.corpus import Corpus, Texts, open_shards
from jumok.data.files import WindowedData
from jumok.data.made import (
    ToyChoices,
    ToyJosa,
    ToyNames,
    ToyQuestions,
    ToyRelations,
    ToyReviews,
    ToySimilarity,
    ToyTopics,
    WindowedToy,
)
from jumok.data.sources import ChoiceData, LabelledData, QuestionData, RelationData, TaggedData
from jumok.errors import DataError
from jumok.models import GptConfig
from jumok.prepare.parts import LAYOUTS, prepare_tokenizer, read_splits
from jumok.recipe import Recipe
from jumok.tasks.answering import AnsweringConfig, AnsweringTask, encode_question, encode_questions
from jumok.tasks.choice import ChoiceTask, encode_choice, encode_choices, ending_fields
from jumok.tasks.classification import (
    ClassificationConfig,
    ClassificationTask,
    encode_labelled,
    encode_text,
    label_weights,
)
from jumok.tasks.relation import (
    HEAD,
    TAIL,
    Admissible,
    RelationConfig,
    RelationTask,
    encode_related,
    encode_relations,
    markers,
)
from jumok.tasks.tagging import Example, TaggingConfig, TaggingTask, collect_tags, encode_tagged
from jumok.tasks.targets import Classes, collect_labels, learn_targets
from jumok.tasks.units import CAPITALS, windows_of
from jumok.tasks.verbal import VerbalTask, encode_prompt, encode_prompts, label_ids
from jumok.tasks.windows import LongTexts
from jumok.text.annotated import Marked
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import MARIAN

AnyLabelled = LabelledData | ToyReviews | ToyTopics | ToySimilarity
AnyTagged = TaggedData | ToyNames | ToyJosa
FLOAT_BITS = 2**32  # ids that a number's bits may be


def prepare_classification(
    recipe: Recipe, config: ClassificationConfig, data: AnyLabelled, cache: Path
) -> ClassificationTask | VerbalTask:
    train, dev, test = read_splits(recipe, data)
    texts = Texts(train, lambda example: [example.text, *([example.pair] if example.pair else [])])
    tokenizer, long_texts = _tokenizer(recipe, texts, "labelled", train, cache), _long_texts(data)
    separator = data.separator if isinstance(data, LabelledData) else "|"
    targets = learn_targets(config.predicts, train, separator=separator, where=train.name)
    targets.gold([*dev, *test])  # an unknown label is named before the training, not after it
    key = ["labelled", config.predicts, separator, train.fingerprint(), tokenizer.sha256, *_window(long_texts)]
    held: dict[str, Any] = {
        "config": config,
        "labels": targets.labels,
        "pair": dev[0].pair is not None,
        **_common(recipe, tokenizer, long_texts, dev),
    }
    if isinstance(recipe.model, GptConfig):
        assert isinstance(targets, Classes)  # a recipe refuses the others
        shards = open_shards(
            cache,
            ["verbal", *key],
            lambda facts: encode_prompts(train, tokenizer, targets, long_texts, facts),
            fields=("text", "label"),
            vocab_size=tokenizer.vocab_size,
        )
        labels = label_ids(tokenizer, targets.labels)
        _refuse_long(long_texts, [*dev, *test], lambda example: encode_prompt(tokenizer, example, labels, long_texts))
        return VerbalTask(**held, targets=targets, train=shards)
    shards = open_shards(
        cache,
        key,
        lambda facts: encode_labelled(train, tokenizer, targets, long_texts, facts),
        fields=("text", "label"),
        vocab_size=FLOAT_BITS if config.predicts == "number" else max(tokenizer.vocab_size, targets.width),
    )
    _refuse_long(long_texts, [*dev, *test], lambda example: encode_text(tokenizer, example, long_texts))
    return ClassificationTask(**held, targets=targets, train=shards, weights=label_weights(config, targets, shards))


def prepare_tagging(recipe: Recipe, config: TaggingConfig, data: AnyTagged, cache: Path) -> TaggingTask:
    train, dev, test = read_splits(recipe, data)
    mark = [CAPITALS] if config.mark_capitals else []
    texts = Texts(
        train, lambda example: [example.text if isinstance(example, Marked) else " ".join(example.words), *mark]
    )
    tokenizer, long_texts = _tokenizer(recipe, texts, "".join(["tagged", *mark]), train, cache), _long_texts(data)
    tags, units = collect_tags(train, mark_capitals=config.mark_capitals)
    shards = open_shards(
        cache,
        ["tagged", train.fingerprint(), tokenizer.sha256, *_window(long_texts), *sorted(units.particles), *mark],
        lambda facts: encode_tagged(train, tokenizer, tags, units, long_texts, facts),
        fields=("text", "first", "tag"),
        vocab_size=max(tokenizer.vocab_size, len(tags), data.max_len),
    )

    def read(example: Example) -> object:
        return windows_of(units.read_example(tokenizer, example), tokenizer, long_texts, where=example.where)

    _refuse_long(long_texts, [*dev, *test], read)
    return TaggingTask(
        labels=tags,
        units=units,
        train=shards,
        **_common(recipe, tokenizer, long_texts, dev),
    )


def prepare_relation(
    recipe: Recipe, config: RelationConfig, data: RelationData | ToyRelations, cache: Path
) -> RelationTask:
    train, dev, test = read_splits(recipe, data)
    # A vocabulary of one's own has to know the markers.
    texts = Texts(train, lambda example: [example.text, f"{HEAD} {TAIL}"])
    tokenizer, long_texts = _tokenizer(recipe, texts, "relations", train, cache), _long_texts(data)
    markers(tokenizer)
    targets = Classes(collect_labels((example.label for example in train), where=train.name))
    targets.gold([*dev, *test])
    if config.no_relation is not None and config.no_relation not in targets.labels:
        right = f"one of {', '.join(targets.labels)}"
        raise DataError(f"no example has the label {config.no_relation}", where="task.no_relation", right=right)
    shards = open_shards(
        cache,
        ["relations", train.fingerprint(), tokenizer.sha256, *_window(long_texts)],
        lambda facts: encode_relations(train, tokenizer, targets, long_texts, facts),
        fields=("text", "head", "tail", "label"),
        vocab_size=max(tokenizer.vocab_size, targets.width, data.max_len + 1),
    )
    _refuse_long(long_texts, [*dev, *test], lambda example: encode_related(tokenizer, example, long_texts))
    return RelationTask(
        config=config,
        labels=targets.labels,
        targets=targets,
        admissible=Admissible.of(train),
        train=shards,
        **_common(recipe, tokenizer, long_texts, dev),
    )


def prepare_answering(
    recipe: Recipe, config: AnsweringConfig, data: QuestionData | ToyQuestions, cache: Path
) -> AnsweringTask:
    train, dev, test = read_splits(recipe, data)
    for example in [] if config.no_answer else [*train, *dev, *test]:
        if not example.answers:
            right = "task.no_answer = true, or questions that all have one"
            raise DataError("a question without an answer", where=example.where, right=right)
    texts = Texts(train, lambda example: [example.question, example.context])
    tokenizer, long_texts = _tokenizer(recipe, texts, "questions", train, cache), _long_texts(data)
    shards = open_shards(
        cache,
        ["questions", train.fingerprint(), tokenizer.sha256, *_window(long_texts)],
        lambda facts: encode_questions(train, tokenizer, long_texts, facts),
        fields=("text", "place"),
        vocab_size=max(tokenizer.vocab_size, data.max_len),
    )
    _refuse_long(long_texts, [*dev, *test], lambda example: encode_question(tokenizer, example, long_texts))
    return AnsweringTask(
        config=config,
        train=shards,
        **_common(recipe, tokenizer, long_texts, dev),
    )


def prepare_choice(recipe: Recipe, data: ChoiceData | ToyChoices, cache: Path) -> ChoiceTask:
    train, dev, test = read_splits(recipe, data)
    texts = Texts(train, lambda example: [example.context, *example.endings])
    tokenizer, long_texts = _tokenizer(recipe, texts, "choices", train, cache), _long_texts(data)
    n_endings = next((len(example.endings) for example in train), 0)
    shards = open_shards(
        cache,
        ["choices", n_endings, train.fingerprint(), tokenizer.sha256, *_window(long_texts)],
        lambda facts: encode_choices(train, tokenizer, long_texts, facts),
        fields=(*ending_fields(n_endings), "label"),
        vocab_size=max(tokenizer.vocab_size, n_endings),
    )
    _refuse_long(long_texts, [*dev, *test], lambda example: encode_choice(tokenizer, example, long_texts))
    return ChoiceTask(
        n_endings=n_endings,
        train=shards,
        **_common(recipe, tokenizer, long_texts, dev),
    )


def _tokenizer(recipe: Recipe, texts: Texts[Any], key: str, train: Corpus[Any], cache: Path) -> Tokenizer:
    """Of the weights that training begins with, or learned from the training text."""
    layout, start = LAYOUTS.get(recipe.model.kind, MARIAN), recipe.init or recipe.features
    return prepare_tokenizer(recipe.tokenizer, texts, [key], train, cache, layout=layout, start=start)


def _common(recipe: Recipe, tokenizer: Tokenizer, long_texts: LongTexts, dev: Sequence[Any]) -> dict[str, Any]:
    """What every task over one text is given."""
    return {
        "tokenizer": tokenizer,
        "long_texts": long_texts,
        "dev": dev,
        "batch_tokens": recipe.train.batch_tokens,
        "seed": recipe.seed,
    }


def _refuse_long(long_texts: LongTexts, held_out: Sequence[Any], read: Callable[[Any], object]) -> None:
    """What would be refused when it is scored is refused before anything is learned."""
    for example in held_out if long_texts.rule == "refuse" else ():
        read(example)


def _long_texts(data: WindowedData | WindowedToy) -> LongTexts:
    return LongTexts(data.max_len, data.long_texts, data.stride)


def _window(long_texts: LongTexts) -> list[object]:
    """What the rows of shards depend on."""
    return [long_texts.max_len, long_texts.rule, long_texts.stride]
