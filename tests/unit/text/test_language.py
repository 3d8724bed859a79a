"""Which texts cannot be of a language."""

import pytest

from jumok.text.language import Language, mixed_word

TEXTS = {
    "en": "A man and his dog are in the garden of the house",
    "de": "Ein Mann und sein Hund sind in dem Garten und der Hund ist nicht klein",
    "fr": "Un homme et son chien sont dans le jardin avec une femme",
    "es": "Un hombre y su perro están en el jardín con los niños",
    "it": "Un uomo e il cane sono nel giardino con gli amici della donna",
    "nl": "Een man en zijn hond zijn in de tuin van het huis",
    "pt": "Um homem e uma mulher estão no jardim com os filhos e não são velhos",
}


@pytest.mark.parametrize("code", TEXTS)
def test_a_text_of_every_other_language_of_the_script_is_told(code: str) -> None:
    found = [other for other, text in TEXTS.items() if Language(code).excludes(text)]
    assert found == [other for other in TEXTS if other != code]


def test_one_other_language_is_looked_for_if_it_is_named() -> None:
    assert [code for code, text in TEXTS.items() if Language("de-AT", other="fr_CA").excludes(text)] == ["fr"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "In 2007 , businesses operated in Lock Haven"),
        ("en", "I felt like I found something"),
        ("en", "no charm , no laughs , no fun"),
        ("de", "Viele Männer in blauen Uniformen gehen in Formation"),
    ],
)
def test_words_that_languages_share_tell_nothing(code: str, text: str) -> None:
    assert not Language(code).excludes(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Log in to pаypal here", "pаypal"),  # a Cyrillic а
        ("the IкBα gene", "IкBα"),
        ("Χenon lamps", "Χenon"),
        ("TNFα, μm, NF-κB and α-helix", None),
        ("Москва는 API를 씁니다", None),
        ("Привет, world", None),
        ("plain ASCII", None),
    ],
)
def test_letters_of_two_scripts_that_look_alike_in_one_word(text: str, word: str | None) -> None:
    assert mixed_word(text) == word
