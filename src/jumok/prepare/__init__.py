"""Recipe -> task: the data read, vocabularies learned, tokens in shards, once for all runs that ask for the same."""

from pathlib import Path

from jumok.data.made import (
    SyntheticData,
    ToyChoices,
    ToyGrammar,
    ToyQuestions,
    ToyRelations,
    ToyStories,
)
from jumok.data.sources import ChoiceData, DocumentData, ParallelData, QuestionData, RelationData, TextData
from jumok.prepare.judging import (
    AnyLabelled,
    AnyTagged,
    prepare_answering,
    prepare_choice,
    prepare_classification,
    prepare_relation,
    prepare_tagging,
)
from jumok.prepare.parts import CACHE_FOLDER, LAYOUTS, cache_folder, prepare_tokenizer, read_split
from jumok.prepare.writing import prepare_language_model, prepare_pretraining, prepare_translation
from jumok.recipe import Recipe
from jumok.tasks.answering import AnsweringConfig, AnsweringTask
from jumok.tasks.choice import ChoiceConfig, ChoiceTask
from jumok.tasks.classification import ClassificationConfig, ClassificationTask
from jumok.tasks.language_model import LanguageModelConfig, LanguageModelTask
from jumok.tasks.pretraining import PretrainingConfig, PretrainingTask
from jumok.tasks.relation import RelationConfig, RelationTask
from jumok.tasks.tagging import TaggingConfig, TaggingTask
from jumok.tasks.translation import TranslationConfig, TranslationTask
from jumok.tasks.verbal import VerbalTask

AnyTask = (
    TranslationTask
    | LanguageModelTask
    | PretrainingTask
    | ClassificationTask
    | VerbalTask
    | TaggingTask
    | RelationTask
    | AnsweringTask
    | ChoiceTask
)

__all__ = ["CACHE_FOLDER", "LAYOUTS", "AnyTask", "cache_folder", "prepare", "prepare_tokenizer", "read_split"]


def prepare(recipe: Recipe, cache: Path) -> AnyTask:
    """Vocabularies and token shards of the recipe's data, and the task that they are for."""
    match recipe.task, recipe.data:
        case TranslationConfig(), ParallelData() | SyntheticData():
            return prepare_translation(recipe, recipe.task, recipe.data, cache)
        case LanguageModelConfig(), TextData() | ToyGrammar() | DocumentData():
            return prepare_language_model(recipe, recipe.data, cache)
        case PretrainingConfig(), DocumentData() | ToyStories():
            return prepare_pretraining(recipe, recipe.task, recipe.data, cache)
        case ClassificationConfig(), data if isinstance(data, AnyLabelled):
            return prepare_classification(recipe, recipe.task, data, cache)
        case TaggingConfig() as config, data if isinstance(data, AnyTagged):
            return prepare_tagging(recipe, config, data, cache)
        case RelationConfig(), RelationData() | ToyRelations():
            return prepare_relation(recipe, recipe.task, recipe.data, cache)
        case AnsweringConfig(), QuestionData() | ToyQuestions():
            return prepare_answering(recipe, recipe.task, recipe.data, cache)
        case ChoiceConfig(), ChoiceData() | ToyChoices():
            return prepare_choice(recipe, recipe.data, cache)
    raise AssertionError("a recipe refuses data that does not fit its task")
