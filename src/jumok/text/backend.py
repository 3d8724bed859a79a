"""The library behind a tokenizer: its errors, its ids, and which special tokens it has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from jumok.errors import CheckpointError, JumokError
from jumok.text.vocabulary import BERT, GPT, MARIAN, ROBERTA, Layout


@contextmanager
def backend_errors(what: str, *, where: Path | None, code: str) -> Iterator[None]:
    """The backend raises bare exceptions, and panics of its Rust code, which Python does not count as exceptions."""
    try:
        yield
    except (JumokError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        hint = "use the tokenizer that the model was trained with"
        raise CheckpointError(f"{what}: {error}", where=where, hint=hint, code=code) from error


def id_of(backend: tokenizers.Tokenizer, token: str) -> int:
    found: int | None = backend.token_to_id(token)
    assert found is not None
    return found


def layout_of(backend: tokenizers.Tokenizer) -> Layout:
    """Detect the layout from the special tokens in the vocabulary."""
    lacking = []
    special = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
    if special.issuperset(ROBERTA.specials):  # Marian's tokens are among RoBERTa's, but never declared
        return ROBERTA
    for layout in (BERT, GPT, MARIAN):
        missing = [token for token in layout.specials if backend.token_to_id(token) is None]
        if not missing:
            return layout
        lacking.append(", ".join(missing))
    raise CheckpointError(
        f"tokenizer lacks special tokens: {lacking[0]} for BERT, {lacking[1]} for GPT, {lacking[2]} for Marian",
        hint="use a vocabulary with the special tokens of one of these layouts",
        code="checkpoint.special_pieces",
    )
