"""The doctor on pairs and translations: each rule finds the fault planted for it, and clean text has no findings."""

import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.examples import Split
from jumok.examples.made.numbers import Problem, generate
from jumok.examples.pairs import Pair
from jumok.findings import Finding
from jumok.tasks.translation.checks import examine_pairs, examine_written

Texts = Sequence[tuple[str, str]]

GERMAN = [
    ("The old bridge is closed for the winter.", "Die alte Brücke ist für den Winter gesperrt."),
    ("She has lost her keys in the garden.", "Sie hat ihre Schlüssel im Garten verloren."),
    ("A boat lies at the quay with its lights on.", "Ein Boot liegt mit brennenden Lichtern am Kai."),
    ("You can take the train to the coast.", "Sie können mit dem Zug an die Küste fahren."),
    ("Rock and Roll never sleeps in this old town.", "Rock and Roll schläft hier niemals."),
    ("They were waiting for the bus in the rain.", "Sie warteten im Regen auf den Bus."),
    ("He reads The Wind in the Willows by the sea.", "Er liest „The Wind in the Willows by the Sea“ mit der Frau."),
    ("He was late and the door was locked.", "Er kam zu spät, und die Tür war abgeschlossen."),
    ("Put the book on the shelf by the window.", "Stell das Buch auf das Regal neben dem Fenster."),
    ("It is not far from here to the market.", "Es ist nicht weit von hier bis zum Markt."),
    ("Snow!", "Schnee!"),
    ("The children are playing with a wooden train.", "Die Kinder spielen mit einer Eisenbahn aus Holz."),
]
KOREAN = [
    ("The library closes at six in the evening.", "도서관은 저녁 여섯 시에 문을 닫습니다."),
    ("Install Python 3.13 with the package manager.", "패키지 관리자로 Python 3.13 을 설치하십시오."),
    ("We walked along the river until dark.", "우리는 어두워질 때까지 강을 따라 걸었다."),
    ("α + β", "α 더하기 β"),
    ("Ada Lovelace, José Martínez", "Ada Lovelace and José Martínez"),
    ("The soup needs a little more salt.", "국에 소금을 조금 더 넣어야 해요."),
    ("This word is written 안녕 in Korean.", "이 낱말은 한국어로 안녕이라고 쓴다."),
    ("2024-01-31", "2024-01-31"),
]
SOURCES, OUTPUTS = [source for source, _ in GERMAN], [target for _, target in GERMAN]
# fmt: off
SOUP = {
    "ko": "국에 소금을 더 넣어야 해요.", "ja": "スープに塩が足りない。", "zh": "汤里要再加一点盐。",
    "el": "Η σούπα θέλει αλάτι", "ru": "В суп надо добавить соли.", "ar": "الحساء يحتاج إلى الملح",
    "he": "המרק צריך עוד מלח", "hi": "सूप में नमक कम है", "th": "ซุปต้องเติมเกลือ",
}
DOG = {
    "de": "Der Hund liegt mit dem Ball auf einer Decke.", "fr": "Le chien est dans la maison avec une balle.",
    "es": "El perro está en la casa con una pelota.", "it": "Il cane è nella casa con una palla che rotola.",
    "nl": "De hond ligt met een bal op het kleed.", "pt": "O cachorro está em casa com uma bola e não late.",
}
# fmt: on


def pairs(texts: Texts, file: str = "train.en") -> list[Pair]:
    return [Pair(source, target, f"{file}:{line}") for line, (source, target) in enumerate(texts, start=1)]


def examined(texts: Texts, source: str = "en", target: str = "de", **options: int) -> list[Finding]:
    return examine_pairs({"train": pairs(texts)}, source=source, target=target, **options)


def lines(finding: Finding) -> list[int]:
    return [int(re.split("[: ]", example.split("  ")[0])[-1]) for example in finding.examples]


def only(findings: Iterable[Finding], code: str) -> Finding:
    """The one finding of a kind."""
    (finding,) = (finding for finding in findings if finding.code == code)
    return finding


@pytest.mark.parametrize(("texts", "target"), [(GERMAN, "de"), (KOREAN, "ko")])
def test_clean_sentences_have_no_findings(texts: Texts, target: str) -> None:
    assert examined(texts, target=target) == []


def test_clean_splits_have_nothing_to_worry_about() -> None:
    splits: tuple[Split, ...] = ("train", "dev", "test")
    numbers = {split: pairs(list(generate("korean_numbers", split, n=300, seed=1))) for split in splits}
    assert {finding.severity for finding in examine_pairs(numbers, source="en", target="ko")} <= {"note"}


@pytest.mark.parametrize("problem", ["reverse", "copy"])
def test_digits_are_neither_copied_nor_of_a_wrong_language(problem: Problem) -> None:
    texts = dict(generate(problem, "train", n=200, seed=1, max_len=40))
    assert examined(list(texts.items()), target="ko") == []


def test_a_finding_says_what_how_many_where_and_what_to_do() -> None:
    finding = only(examined([*GERMAN, ("A word" + " more" * 40, "")]), "data.empty")
    assert (finding.severity, finding.count, finding.share) == ("warning", 1, 1 / 13)
    assert finding.message.startswith("train: pairs with an empty side: 1 of 13 (7.7 %). Training skips them")
    assert re.fullmatch(r"train\.en:13  A word more .{60,70}… \|\|\| ", finding.examples[0])


def test_at_most_five_examples_are_given() -> None:
    finding = only(examined([(" \t", f"Zeile {i}") for i in range(9)]), "data.empty")
    assert (finding.count, lines(finding), finding.severity) == (9, [1, 2, 3, 4, 5], "error")


def test_a_split_without_pairs_is_an_error_and_the_worst_comes_first() -> None:
    splits = {"train": pairs([*GERMAN * 2, ("Snow!", "Es schneit!"), ("Rain!", "")]), "dev": []}
    findings = examine_pairs(splits, source="en", target="de")
    assert [finding.severity for finding in findings] == ["error", "warning", "warning", "note"]
    assert (findings[0].code, findings[0].message[:13]) == ("data.empty", "dev: no pairs")


@pytest.mark.parametrize(
    ("code", "severity", "planted", "found"),
    [
        ("data.duplicate", "note", [(SOURCES[0].replace(" ", "\u00a0 "), OUTPUTS[0])], [13]),
        ("data.duplicate", "warning", GERMAN[:5], [13, 14, 15, 16, 17]),
        ("data.several_targets", "note", [("Snow!", "Es schneit!")], [13]),
        ("data.copied", "warning",
         [("Bread and  butter", "bread and butter"), ("10:30 – 11:00", "10:30 – 11:00")], [13]),
        ("data.too_long", "warning", [("and so on " * 9, "und so weiter")], [13]),
        ("data.too_long", "warning", [("and so forth", "und so fort " * 9)], [13]),
        ("data.length_ratio", "warning",
         [("Unheard-of deeds, " * 9, "Das ist zu wenig Text."), ("Oh", "Ach! " * 9)], [13]),
        ("data.length_ratio", "warning", [("This is much too short.", "Unglaubliche Vorkommnisse, " * 8)], [13]),
    ],
)  # fmt: skip
def test_planted_faults_are_found(code: str, severity: str, planted: Texts, found: list[int]) -> None:
    (finding,) = examined([*GERMAN, *planted], max_words=26)
    assert (finding.code, finding.severity, lines(finding), finding.count) == (code, severity, found, len(found))


@pytest.mark.parametrize(
    ("source", "target", "texts"),
    [
        ("en-GB", "en_US", [("Bread and butter", "Bread and butter")]),
        ("en", "de", [("and so on " * 9, "und so weiter")]),
        ("en", "zh", [("It rains and rains.", "下雨了又下雨了还在下雨呢" * 4 + "下雨了又下雨")]),
        ("en", "de", [(f"Chapter {i} of a long book", f"Kapitel {i} vom Buch, " * 6) for i in range(20)]),
    ],
)
def test_what_is_no_fault(source: str, target: str, texts: Texts) -> None:
    assert examined(texts, source, target, max_words=27) == []


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("texts", "target"), [(GERMAN, "de"), (KOREAN, "ko")])
def test_decomposed_text_is_noted_and_otherwise_the_same(texts: Texts, target: str, side: int) -> None:
    accented = ("The café is full.", {"de": "Das Café ist voll.", "ko": "국밥집이 꽉 찼다."}[target])
    planted = tuple(unicodedata.normalize("NFD", text) if i == side else text for i, text in enumerate(accented))
    n = len(texts)
    findings = examined([*texts, accented, (planted[0], planted[1])], target=target)
    note = only(findings, "data.decomposed")
    assert (note.severity, note.count, lines(note)) == ("note", 1, [n + 2])
    assert [lines(finding) for finding in findings if finding.code != "data.decomposed"] == [[n + 2]]
    assert only(findings, "data.duplicate")
    message = f"train: pairs with decomposed characters (NFD): 1 of {n + 2} ("
    assert (note.message.startswith(message), "Training composes them (NFC)" in note.message) == (True, True)


def test_what_nfc_keeps_or_takes_apart_is_not_decomposed() -> None:
    # A circumflex on a letter that has none, a compatibility ideograph, a letter that NFC itself takes apart.
    assert examined([("m\u0302 stays", "m\u0302 bleibt"), ("\uf900", "\u0958")]) == []


def test_long_text_without_spaces_is_over_long_too() -> None:
    assert only(examined([("It rains.", "下雨了又下雨了还在下雨呢" * 5)], target="zh", max_words=29), "data.too_long")


@pytest.mark.parametrize("language", SOUP)
def test_scripts_tell_wrong_languages(language: str) -> None:
    english, text = "The soup needs a little more salt.", SOUP[language]
    assert examined([(english, text)], target=language) == []
    untranslated = only(examined([(english, text), ("Some words.", english)], target=language), "data.wrong_language")
    assert (lines(untranslated), "target" in untranslated.message) == ([2], True)
    foreign = only(examined([(english, text), (f"{text} TV", text[::-1])], target=language), "data.wrong_language")
    assert (lines(foreign), "source" in foreign.message) == ([2], True)


@pytest.mark.parametrize("language", DOG)
def test_function_words_tell_languages_of_one_script(language: str) -> None:
    english, text = "The dog is in the house with a ball.", DOG[language]
    assert examined([(english, text)], target=language) == []
    texts = [(english, text), ("Dogs!", "It was a dog, and it was in the house."), (text, text.replace(".", "!"))]
    found = {"source" in finding.message: lines(finding) for finding in examined(texts, target=language)}
    assert found == {False: [2], True: [3]}
    # Spanish and French share words, which say nothing.
    assert only(examined([(DOG["es"], "¿Perro?")], source="fr", target="es"), "data.wrong_language")


def test_few_wrong_lines_are_a_note_and_many_an_error() -> None:
    numbers = list(generate("korean_numbers", "dev", n=1200, seed=1))
    one = only(examined([*numbers, (SOUP["ko"], "국이 싱겁다")], target="ko"), "data.wrong_language")
    assert (one.severity, lines(one), "1 of 1,201 (below 0.1 %)" in one.message) == ("note", [1201], True)
    assert only(examined([(SOUP["ko"], "국이 싱겁다")], target="ko"), "data.wrong_language").severity == "error"


@pytest.mark.parametrize(("texts", "target"), [(GERMAN, "de"), (KOREAN, "ko")])
def test_swapped_sides_are_one_error(texts: Texts, target: str) -> None:
    (finding,) = examined([(right, left) for left, right in texts], target=target)
    assert (finding.code, finding.severity) == ("data.swapped", "error")
    assert f"a source in {target} and a target in en" in finding.message


def test_one_swapped_line_is_two_texts_in_a_wrong_language() -> None:
    findings = examined([*GERMAN[:-1], GERMAN[-1][::-1]])
    assert [(finding.code, lines(finding)) for finding in findings] == [("data.wrong_language", [12])] * 2


def test_overlap_of_pairs_and_of_sources() -> None:
    held_out = [("Lock the door.", "Schließ die Tür ab."), GERMAN[3], ("Snow!", "Es schneit!")]
    splits = {"dev": pairs(held_out, "dev.en"), "train": iter(pairs(GERMAN))}
    findings = examine_pairs(splits, source="en", target="de")
    assert [(finding.code, finding.severity) for finding in findings] == [
        ("data.overlap", "error"),
        ("data.overlap", "warning"),
    ]
    assert [finding.examples[0][:8] for finding in findings] == ["dev.en:2", "dev.en:3"]
    assert findings[0].message.startswith("dev pairs that are also in train: 1 of 3")
    assert "source is in train with another target: 1 of 3" in findings[1].message


def test_overlap_of_dev_and_test() -> None:
    splits = {"train": pairs(GERMAN[:6]), "dev": pairs(GERMAN[6:9]), "test": pairs(GERMAN[8:] + GERMAN[:1])}
    findings = examine_pairs(splits, source="en", target="de")
    assert [lines(finding) for finding in findings] == [[1], [5]]
    assert [finding.message.split(":")[0][-11:] for finding in findings] == ["also in dev", "so in train"]


any_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.tuples(any_text, any_text), max_size=30), st.sampled_from(["de", "ko", "zh", "xx"]))
def test_any_text_can_be_examined(texts: Texts, target: str) -> None:
    sources, targets = [source for source, _ in texts], [target for _, target in texts]
    for finding in examined(texts, target=target) + examine_written(sources, targets):
        assert finding.count <= len(texts)
        assert 0 <= finding.share <= 1


SHADE = "A man is sitting in the shade."
CLOSE = "Close the window before you leave the house tonight."
CLOSE_GERMAN = "Mach das Fenster zu, ehe du heute aus dem Haus gehst."


@pytest.mark.parametrize(
    ("kind", "source", "output", "reference"),
    [
        ("output.repetition", SHADE, "Der Mann sitzt sitzt sitzt sitzt da.", None),
        ("output.repetition", SHADE, "ein Mann mit Hut, ein Mann mit Hut, ein Mann mit Hut, ein Mann mit Hut.", None),
        ("output.repetition", SHADE, "Nein, nein, nein, NEIN!", SHADE),
        ("output.repetition", SHADE, "Das Ende . . . . . .", None),
        ("output.repetition", SHADE, "그는 매일매일매일매일매일매일 걷는다", None),
        ("output.repetition", SHADE, "我喜欢吃苹果吃苹果吃苹果吃苹果", None),
        ("output.repetition", SHADE, "Hmmmmmmmmmmmmmm", None),
        (None, "An extremely good book", "Ein sehr sehr sehr gutes Buch", None),
        (None, "No, no, no, no!", "Nein nein nein nein!", None),
        (None, "1 1 1 1 1 2", "2 1 1 1 1 1", None),
        (None, "He laughed.", "하하하하하하", None),
        (None, "It costs one trillion.", "Es kostet 1000000000000.", None),
        (None, "He laughed on and on.", "ha ha ha ha", "ha ha ha ha ha"),
        ("output.empty", "Where is the key?", " ", "Wo ist der Schlüssel?"),
        (None, " ", "", None),
        ("output.copied", SHADE, f"{SHADE} ", None),
        ("output.copied", "国に塩を入れる", "国に塩を入れる", None),
        (None, "New York", "New York", None),
        (None, "1 2 3 4", "1 2 3 4", None),
        (None, "Let It Be", "Let It Be", "Let It Be"),
        ("output.too_long", "Close it.", CLOSE_GERMAN, None),
        (None, "Close the window.", CLOSE_GERMAN, None),
        (None, "Go.", "Nun geh aber endlich, bitte.", None),
        ("output.too_long", CLOSE, CLOSE_GERMAN, "Schließ es!"),
        (None, CLOSE, CLOSE_GERMAN, "Schließ das Fenster! Ja?"),
        (None, "Go.", "Nun geh aber endlich, bitte.", "Geh."),
    ],
)  # fmt: skip
def test_outputs(kind: str | None, source: str, output: str, reference: str | None) -> None:
    references = None if reference is None else [*OUTPUTS, reference]
    findings = examine_written([*SOURCES, source], [*OUTPUTS, output], references)
    expected = [(kind, [13], 1, "warning")] if kind else []
    assert [(found.code, lines(found), found.count, found.severity) for found in findings] == expected


def test_findings_of_outputs_can_name_their_split() -> None:
    finding = only(examine_written(["a", "b"], ["", "c"], split="test"), "output.empty")
    assert finding.message.startswith("test: empty outputs for sources that are not empty: 1 of 2")


def test_one_output_for_many_sources() -> None:
    finding = only(examine_written(SOURCES, ["Ein Mann."] * 5 + OUTPUTS[5:]), "output.ignores_input")
    assert (finding.severity, finding.count, finding.share, lines(finding)) == ("error", 5, 5 / 12, [1, 2, 3, 4, 5])
    many, outputs = ([f"{text} {i}" for i in range(10) for text in texts[:10]] for texts in (SOURCES, OUTPUTS))
    assert only(examine_written(many, ["Ein Mann."] * 20 + outputs[20:]), "output.ignores_input")
    assert examine_written(many, ["Ein Mann."] * 19 + outputs[19:]) == []
    assert examine_written(SOURCES, ["Ein Mann."] * 4 + OUTPUTS[4:]) == []
    assert examine_written(["Yes."] * 20 + SOURCES, ["Ja."] * 20 + OUTPUTS) == []
    assert examine_written(SOURCES, ["Ja."] * 6 + OUTPUTS[6:], ["Ja."] * 6 + OUTPUTS[6:]) == []


def test_a_fault_of_all_outputs_is_an_error() -> None:
    assert only(examine_written(["a", "b"], ["", ""]), "output.empty").severity == "error"


@pytest.mark.parametrize(("outputs", "references"), [(["a"], None), (["a", "b"], ["a"])])
def test_unequal_counts_are_refused(outputs: list[str], references: list[str] | None) -> None:
    with pytest.raises(DataError) as caught:
        examine_written(["a", "b"], outputs, references)
    assert (caught.value.code, re.findall(r"\d+", caught.value.what)) == ("data.counts", ["2", "1"])


def test_the_doctor_needs_no_torch() -> None:
    code = "import sys, jumok.doctor; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
