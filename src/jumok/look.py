"""What a loaded model looks at, or finds, drawn: alignments, the words by which it judges, entities and relations."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jumok.errors import InputError
from jumok.picture import MOST_PASSAGES, Passage, draw_alignment, draw_marks, draw_words, refuse_undrawable
from jumok.predictor import Answered, Answerer, Classifier, Predictor, RelatedText, Relater, Tagger, Translator, load
from jumok.tasks.answerer import read_question
from jumok.tasks.tagger import Found
from jumok.text.annotated import parse_related


def draw_attention(run: Path, text: str, picture: Path, *, output: str | None = None) -> dict[str, Any]:
    """Draw into `picture`, and give what was drawn for JSON; the model is loaded once nothing else is wrong."""
    refuse_undrawable(picture)
    if not text.strip():
        raise InputError("no text to look at", right='a text: jumok attention RUN "two hundred six"')
    predictor = load(run)
    right = 'a run of translation that attends, or a recurrent classifier with model.pool = "attention"'
    none = InputError("this model has no attention over words that could be drawn", where=run, right=right)
    match predictor:
        case Translator():
            written = predictor.predict([text])[0] if output is None else output
            alignment = predictor.align(text, written)
            if alignment is None:
                raise none
            draw_alignment(alignment, picture)
            said = written if isinstance(written, str) else written.text
            return {"input": text, "output": said, **asdict(alignment)}
        case Classifier():
            if output is not None:
                raise InputError("a classifier writes nothing that could be aligned", where=run, right="no --output")
            (found,) = predictor.predict([text])
            if found.words is None:
                raise none
            words, weights = zip(*found.words, strict=True)
            sure = "" if found.probability is None else f" {found.probability:.2f}"
            draw_words(words, weights, picture, title=f"{found.text or 'no label'}{sure}")
            return {"input": text, **asdict(found)}
    what = "this command draws what translators and classifiers look at, and this run is neither"
    raise InputError(what, where=run, right=right)


def draw_found(
    predictor: Predictor, predicted: Iterable[tuple[str, Any]], picture: Path, *, raw_text: bool
) -> Iterator[tuple[str, Any]]:
    """Hand on every line with its output, and draw in the end what was found in all of them.

    With `raw_text` a line is a text even where relations are asked for, and not two entities of one as JSON.
    """
    if not isinstance(predictor, Tagger | Relater | Answerer):
        right = "a run of tagging, relation or answering"
        raise InputError("this run finds nothing that could be marked in a text", where="--picture", right=right)
    return _drawn_in_the_end(predicted, picture, pairs=isinstance(predictor, Relater) and not raw_text)


def _drawn_in_the_end(predicted: Iterable[tuple[str, Any]], picture: Path, *, pairs: bool) -> Iterator[tuple[str, Any]]:
    passages: dict[int, Passage] = {}
    first = 1
    for number, (line, output) in enumerate(predicted, start=1):
        yield line, output
        passage = _passage(line, output, pairs)
        before = passages.get(first)
        if pairs and before and before.text == passage.text:  # other entities of the same text
            entities, relations = [*before.entities, *passage.entities], [*before.relations, *passage.relations]
            passage = Passage(passage.text, entities, relations)
        else:
            first = number
        passages[first] = passage
        if len(passages) > MOST_PASSAGES:
            right = f"at most {MOST_PASSAGES}, fewer if they are long"
            raise InputError("too many texts for one picture", where=picture, right=right)
    if len(passages) > 1:
        titles = {n: f"line {n}" + (f": {passage.title}" if passage.title else "") for n, passage in passages.items()}
        passages = {n: replace(passage, title=titles[n]) for n, passage in passages.items()}
    draw_marks([*passages.values()], picture)


def _passage(line: str, output: Any, pairs: bool) -> Passage:
    match output:
        case Answered():
            asked, best = read_question(line, ""), output.answers[0]
            found = [Found(best.start, best.end, "answer", best.text, best.probability)] if best.text else []
            return Passage(asked.context, found, title=asked.question)
        case RelatedText():
            return Passage(parse_related(line, "").text if pairs else line, output.entities, output.relations)
        case _:
            return Passage(line, output.entities)
