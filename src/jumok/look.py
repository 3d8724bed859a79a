"""What a loaded model looks at, drawn: the alignment of a translator, the words by which a classifier judges."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from jumok.errors import InputError
from jumok.picture import draw_alignment, draw_words, refuse_undrawable
from jumok.predictor import Classifier, Translator, load


def draw_attention(run: Path, text: str, picture: Path, *, output: str | None = None) -> dict[str, Any]:
    """Draw into `picture`, and give what was drawn for JSON; the model is loaded once nothing else is wrong."""
    refuse_undrawable(picture)
    if not text.strip():
        raise InputError("no text to look at", right='a text: jumok attention RUN "two hundred six"')
    predictor = load(run)
    right = "a Transformer, or a recurrent model that attends"
    none = InputError("this model has no attention", where=run, right=right)
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
    raise none
