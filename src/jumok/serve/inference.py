"""What Hugging Face's inference API asks of each task, and how it is told."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jumok.errors import JumokError
from jumok.examples.labelled import Labelled
from jumok.examples.pairs import Pair
from jumok.examples.plain import Text
from jumok.examples.questions import Question
from jumok.examples.spans import Spans
from jumok.serve.app import Server, json_response
from jumok.serve.fields import Fields, WrongField
from jumok.serve.models import Served
from jumok.serve.refusal import ErrorShape, Refusal
from jumok.serve.writing import (
    MOST_TOKENS,
    EventStream,
    Finish,
    Piece,
    Sampling,
    Stream,
    Writing,
    begin,
    jobs_of,
    writer_of,
)
from jumok.tasks.answering.predictor import Answered, Answerer
from jumok.tasks.classification.predictor import Classified, Classifier
from jumok.tasks.language_model.predictor import Generator
from jumok.tasks.pretraining.predictor import Encoded, Encoder
from jumok.tasks.protocol import Failure
from jumok.tasks.tagging.predictor import TaggedText
from jumok.tasks.translation.predictor import Translator
from jumok.text.span import Span

MOST = 100
"""labels, answers or words of one answer"""
FINISH: dict[Finish | None, str] = {"end": "eos_token", "stop": "stop_sequence", "length": "length"}


def _error(refusal: Refusal) -> dict[str, Any]:
    status = ERRORS.status(refusal)
    kind = {400: "validation", 429: "overloaded"}.get(status, "generation" if status >= 500 else "")
    said = f"{refusal.what} ({refusal.hint})" if refusal.hint else refusal.what
    return {"error": said} | ({"error_type": kind} if kind else {})


TEXT = {"type": "string"}
ERRORS = ErrorShape(
    _error,
    {"type": "object", "required": ["error"], "properties": {"error": TEXT, "error_type": TEXT}},
    {422: 400, 409: 404},
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for one run."""

    server: Server
    request: Request
    served: Served
    inputs: list[Any]
    several: bool
    """`inputs` was a list"""
    top: Fields
    given: Fields
    """`parameters`"""

    def end(self) -> None:
        self.top.ignore("options", "model")
        self.top.end()
        self.given.end()

    def texts(self) -> list[str]:
        for text in self.inputs:
            if not isinstance(text, str):
                raise WrongField("inputs", "must be a text or a list of texts")
        return self.inputs

    async def outputs(self, examples: Sequence[Any], options: Any) -> list[Any]:
        self.end()
        found = await self.server.answer(self.request, self.served, examples, options)
        for output in found:
            if isinstance(output, Failure):
                raise Refusal(400, output.code, output.what, hint=output.hint or "")
        return found


async def translation(asked: Asked) -> Response:
    predictor, given = asked.served.predictor, asked.given
    assert isinstance(predictor, Translator)
    given.only("src_lang", None, predictor.source)
    given.only("tgt_lang", None, predictor.target)
    given.ignore("clean_up_tokenization_spaces", "truncation")  # too long a text is refused
    wish = Fields(given.take("generate_parameters", {}), "generate_parameters")
    beam = wish.whole("num_beams", 1, 8)
    options: dict[str, Any] = {} if beam is None else {"method": "beam", "beam": beam, "n_best": 1}
    sampling = _sampling(wish)
    wish.end()
    if sampling != Sampling():
        options |= _sampled(sampling, predictor)
    found = await asked.outputs([Pair(text, None) for text in asked.texts()], options)
    return json_response([{"translation_text": output.text} for output in found])


def _sampled(sampling: Sampling, writer: Translator | Generator) -> dict[str, Any]:
    options = _options(sampling, writer)
    return {name: getattr(options, name) for name in ("method", "temperature", "top_k", "top_p", "seed", "n_best")}


def _options(sampling: Sampling, writer: Translator | Generator) -> Any:
    try:
        return sampling.options(writer)
    except JumokError as error:
        raise Refusal(400, error.code, error.what, hint=error.hint or "") from error


def _sampling(wish: Fields) -> Sampling:
    sample = wish.flag("do_sample") if "do_sample" in wish else None
    temperature, top_p = wish.number("temperature", 0, 100), wish.number("top_p", 0, 1)
    if top_p == 0:
        raise WrongField("top_p", "must be more than 0")
    return Sampling(temperature, top_p, wish.whole("top_k", 0, 2**31), wish.seed(), sample)


async def text_classification(asked: Asked) -> Response:
    classifier, most = asked.served.predictor, asked.given.whole("top_k", 1, MOST)
    assert isinstance(classifier, Classifier)
    apart = classifier.about()["predicts"]
    asked.given.only("function_to_apply", None, {"class": "softmax", "labels": "sigmoid", "number": "none"}[apart])
    found = await asked.outputs([_labelled(given) for given in asked.inputs], {})
    return json_response([_labels(output)[:most] for output in found])


def _labelled(given: Any) -> Any:
    if isinstance(given, str):
        return Labelled(given)
    pair = Fields(given, "inputs")
    found = Labelled(pair.text("text"), pair.text("text_pair") if "text_pair" in pair else None)
    pair.end()
    return found


def _labels(output: Classified) -> list[dict[str, Any]]:
    if output.value is not None:
        return [{"label": "LABEL_0", "score": output.value}]
    best = sorted(output.probabilities.items(), key=lambda one: -one[1])
    return [{"label": label, "score": score} for label, score in best]


async def token_classification(asked: Asked) -> Response:
    together = asked.given.take("aggregation_strategy", "simple")
    if together not in ("none", "simple", "first", "average", "max"):
        raise WrongField("aggregation_strategy", "must be none, simple, first, average or max")
    left_out = asked.given.take("ignore_labels", ["O"])
    if not isinstance(left_out, list):
        raise WrongField("ignore_labels", "must be a list of labels")
    texts = asked.texts()
    found = await asked.outputs([Spans(text) for text in texts], {})
    name = "entity" if together == "none" else "entity_group"
    answers = [
        [
            {name: span.label, "score": span.score, "word": span.text, "start": span.start, "end": span.end}
            for span in (_tokens(text, output) if together == "none" else output.entities)
            if span.label not in left_out
        ]
        for text, output in zip(texts, found, strict=True)
    ]
    return json_response(answers if asked.several else answers[0])


def _tokens(text: str, output: TaggedText) -> list[Span]:
    """The tagged units with their places: between them there is only white space."""
    found, at = [], 0
    for word, tag, probability in zip(output.words, output.tags, output.probabilities, strict=True):
        at = text.index(word, at)
        found.append(Span(at, at + len(word), tag, word, probability))
        at += len(word)
    return found


async def question_answering(asked: Asked) -> Response:
    answerer, most = asked.served.predictor, asked.given.whole("top_k", 1, MOST)
    assert isinstance(answerer, Answerer)
    possible = asked.given.take("handle_impossible_answer")
    asked.given.only("max_answer_len", None, answerer.config.max_answer)
    asked.given.ignore("align_to_words")  # answers are whole words
    examples = []
    for given in asked.inputs:
        pair = Fields(given, "inputs")
        examples.append(Question("", pair.text("question"), pair.text("context")))
        pair.end()
    found = await asked.outputs(examples, {"n_best": max(most or 1, 5) + 1})
    answers = [_answers(output, most or 1, nothing=possible is not False) for output in found]
    told: list[Any] = answers if (most or 1) > 1 else [best[0] for best in answers]
    return json_response(told if asked.several else told[0])


def _answers(output: Answered, most: int, *, nothing: bool) -> list[dict[str, Any]]:
    spans = [span for span in output.answers if nothing or span.text] or output.answers
    return [{"answer": s.text, "score": s.score, "start": s.start, "end": s.end} for s in spans[:most]]


async def fill_mask(asked: Asked) -> Response:
    encoder, most = asked.served.predictor, asked.given.whole("top_k", 1, MOST) or 5
    assert isinstance(encoder, Encoder)
    wanted, texts = _targets(asked.given.take("targets"), encoder), asked.texts()
    for text in texts:
        if encoder.mask not in text:
            raise WrongField("inputs", f"there is no {encoder.mask} in the text")
    options = {"ask": "fill", "top_k": encoder.tokenizer.vocab_size if wanted else most}
    found = await asked.outputs([Text(text) for text in texts], options)
    answers: list[Any] = []
    for text, output in zip(texts, found, strict=True):
        masks = _masks(text, output, encoder, wanted, most)
        answers.append(masks[0] if len(masks) == 1 else masks)
    return json_response(answers if asked.several else answers[0])


def _targets(given: Any, encoder: Encoder) -> set[int]:
    """Tokens that alone may fill a mask; empty for all."""
    if given is None:
        return set()
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise WrongField("targets", "must be a list of words")
    try:
        ids = encoder.tokenizer.encode_batch(texts)
    except JumokError as error:
        raise WrongField("targets", error.what) from error
    for text, found in zip(texts, ids, strict=True):
        if len(found) != 1 or found[0] == encoder.tokenizer.unk_id:
            raise WrongField("targets", f"{text[:40]!r} is not one token of the vocabulary")
    return {found[0] for found in ids}


def _masks(text: str, output: Encoded, encoder: Encoder, wanted: set[int], most: int) -> list[list[dict[str, Any]]]:
    """For each mask its candidates, with the text in which they stand; other masks are left."""
    mask = encoder.mask
    parts, found = text.split(mask), []
    for place, candidates in enumerate(output.candidates):
        before, after = mask.join(parts[: place + 1]), mask.join(parts[place + 1 :])
        chosen = [one for one in candidates if not wanted or one.id in wanted][:most]
        found.append(
            [
                {
                    "sequence": f"{before}{encoder.tokenizer.written(one.id)}{after}",
                    "score": one.score,
                    "token": one.id,
                    "token_str": one.piece,
                }
                for one in chosen
            ]
        )
    return found


async def feature_extraction(asked: Asked) -> Response:
    """One vector for each text: the mean of its tokens."""
    normal, width = asked.top.flag("normalize"), asked.top.whole("dimensions", 1, 2**20)
    asked.top.only("encoding_format", "float")
    asked.top.ignore("truncate", "truncation_direction")  # long texts are read in windows
    found = await asked.outputs([Text(text) for text in asked.texts()], {"ask": "embedding"})
    vectors = np.array([output.vector for output in found])
    if width not in (None, vectors.shape[1]):
        raise WrongField("dimensions", f"the model has {vectors.shape[1]}, and no fewer")
    if normal:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return JSONResponse(vectors.tolist())


async def text_generation(asked: Asked) -> Response:
    writer, given = writer_of(asked.served), asked.given
    if writer is None:
        raise Refusal(400, "serve.task", "the model reads in both directions, and cannot write")
    most, stops = given.whole("max_new_tokens", 1, MOST_TOKENS), given.stops()
    details, full = given.flag("details"), given.flag("return_full_text")
    sampling = _sampling(given)
    for name in ("watermark", "decoder_input_details"):
        given.only(name, False)
    for name in ("best_of", "repetition_penalty", "typical_p"):
        given.only(name, None, 1)
    given.only("frequency_penalty", 0)
    streamed = asked.top.flag("stream")
    asked.end()
    options = _options(sampling, writer)
    if streamed and asked.several:
        raise WrongField("inputs", "only one text can be streamed")
    prompts = asked.texts()
    if len(prompts) > asked.server.limits.inputs:
        raise WrongField("inputs", f"at most {asked.server.limits.inputs:,} texts at once")

    def make() -> list[Writing]:
        return [Writing(writer, prompt, options, seed=options.seed, most=most, stops=stops) for prompt in prompts]

    writings = await begin(make)
    jobs = jobs_of(asked.served, options, writings)
    before = prompts if full else [""] * len(prompts)
    if streamed:
        stream = Stream(asked.server, jobs)
        await stream.open(asked.request)
        return EventStream(stream, _events(stream, writings[0], before[0]), ERRORS)
    await asked.server.compute(asked.request, jobs)
    found = [
        {"generated_text": start + writing.text} | ({"details": _details(writing)} if details else {})
        for start, writing in zip(before, writings, strict=True)
    ]
    return json_response(found)


async def _events(stream: Stream, writing: Writing, before: str) -> AsyncIterator[dict[str, Any]]:
    index = 0
    async for _, piece in stream.pieces():
        index += 1
        event = {"index": index, "token": _token(piece), "generated_text": None, "details": None}
        if piece.finish:
            details = {**_reason(writing), "input_length": writing.prompt_tokens}
            event |= {"generated_text": before + writing.text, "details": details}
        yield event


def _token(piece: Piece) -> dict[str, Any]:
    return {"id": piece.token, "text": piece.text, "logprob": piece.log_prob, "special": piece.special}


def _reason(writing: Writing) -> dict[str, Any]:
    known = {"generated_tokens": writing.written, "seed": writing.request.seed}
    return {"finish_reason": FINISH[writing.finish], **known}


def _details(writing: Writing) -> dict[str, Any]:
    return {**_reason(writing), "prefill": [], "tokens": [_token(piece) for piece in writing.pieces]}


Answer = Callable[[Asked], Any]
TASKS: dict[str, dict[str, Answer]] = {
    "translation": {"translation": translation},
    "classification": {"text-classification": text_classification},
    "tagging": {"token-classification": token_classification},
    "answering": {"question-answering": question_answering},
    "pretraining": {"fill-mask": fill_mask, "feature-extraction": feature_extraction},
    "language_model": {"text-generation": text_generation},
}
"""what runs of a task answer to, under Hugging Face's names"""
