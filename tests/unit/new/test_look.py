"""What files are taken for: every kind, and those that are wrong or could be two things."""

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jumok.errors import InputError
from jumok.new import Question, Told
from jumok.new.corpus import look
from jumok.new.found import Found

Make = Callable[[Mapping[str, str]], Path]
REVIEWS = "".join(
    f"이 영화는 정말 {'재미있게 잘' if i % 2 else '지루하게 겨우'} 봤다 {i}\t{'좋음' if i % 2 else '나쁨'}\n"
    for i in range(60)
)
ENGLISH = [f"The cat number {i} sat on the mat and it was happy with that." for i in range(60)]
KOREAN = [f"고양이 {i}번이 매트 위에 앉아서 행복했다." for i in range(60)]
GERMAN = [f"Die Katze Nummer {i} saß auf der Matte und war nicht mit dem Hund im Haus." for i in range(60)]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make_files(files: Mapping[str, str]) -> Path:
        for name, content in files.items():
            path = tmp_path / "corpus" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            raw = content.encode()
            path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return tmp_path / "corpus"

    return make_files


def seen(*given: Path, **told: str) -> tuple[Found, list[Question]]:
    """What was found, and what was asked; the guess is taken."""
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return question.guess

    return look(given, Told(**told), ask), asked


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def names(found: Found, split: str) -> list[str]:
    files = found.data[split]
    flat = [file for each in files for file in (each if isinstance(each, list) else [each])]
    return [Path(file).name for file in flat]


def refused(*given: Path, **told: str) -> InputError:
    with pytest.raises(InputError) as caught:
        seen(*given, **told)
    return caught.value


# texts and their translations


def test_line_aligned_files_of_a_folder(make: Make) -> None:
    files = {f"{split}.{code}": lines(texts[:n]) for code, texts in (("ko", KOREAN), ("en", ENGLISH))
             for split, n in (("valid", 10), ("test", 5))}  # fmt: skip
    files |= {"train.ko.gz": lines(KOREAN), "train.en.gz": lines(ENGLISH), "README.md": "about"}
    found, asked = seen(make(files))
    assert (found.task, found.data["source"], found.data["target"]) == ("translation", "en", "ko")
    assert [question.option for question in asked] == ["--source"]
    assert found.sizes == {"train": 60, "dev": 10, "test": 5}
    assert names(found, "train") == ["train.en.gz", "train.ko.gz"]
    assert names(found, "dev") == ["valid.en", "valid.ko"]


def test_the_order_of_two_files_is_the_direction(make: Make) -> None:
    folder = make({"train.en": lines(ENGLISH), "train.ko": lines(KOREAN)})
    found, asked = seen(folder / "train.ko", folder / "train.en")
    assert (found.data["source"], found.data["target"], asked) == ("ko", "en", [])


def test_three_languages_are_asked_for(make: Make) -> None:
    folder = make({"train.en": lines(ENGLISH), "train.ko": lines(KOREAN), "train.de": lines(GERMAN)})
    found, asked = seen(folder, source="de", target="ko")
    assert names(found, "train") == ["train.de", "train.ko"]
    assert asked == []
    assert {question.option for question in seen(folder)[1]} == {"--source", "--target"}
    assert refused(folder, source="fr").code == "data.languages"


def test_files_that_are_not_aligned(make: Make) -> None:
    folder = make({"train.en": lines(ENGLISH), "train.ko": lines(KOREAN[:-1])})
    assert refused(folder).code == "data.line_counts"
    assert refused(folder / "train.en").code == "data.unknown_kind"


PO = 'msgid ""\nmsgstr "Language: ko\\n"\n\n' + "".join(
    f'msgid "{text}"\nmsgstr "{translation}"\n\n' for text, translation in zip(ENGLISH, KOREAN, strict=True)
)


@pytest.mark.parametrize("name", ["messages.po", "messages.po.gz"])
def test_a_catalogue(make: Make, name: str) -> None:
    found, asked = seen(make({name: PO}) / name)
    assert (found.task, found.data["source"], found.data["target"], asked) == ("translation", "en", "ko", [])
    assert found.sizes == {"train": 60}


def test_a_catalogue_without_a_language(make: Make) -> None:
    path = make({"x.po": PO.replace("Language: ko", "X: y")}) / "x.po"
    assert seen(path)[0].data["target"] == "ko"  # by its letters


def test_a_tmx(make: Make) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="ko"><seg>{b}</seg></tuv></tu>'
        for a, b in zip(ENGLISH, KOREAN, strict=True)
    )
    content = f'<tmx version="1.4"><header srclang="ko"/><body>{units}</body></tmx>'
    found, asked = seen(make({"a.tmx": content}) / "a.tmx")
    assert (found.data["source"], found.data["target"], asked) == ("ko", "en", [])


@pytest.mark.parametrize("header", ["", "en\tko\n"])
def test_two_columns_of_texts(make: Make, header: str) -> None:
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(ENGLISH, KOREAN, strict=True))
    found, _ = seen(make({"a.tsv": header + rows}) / "a.tsv")
    assert (found.task, found.data["source"], found.data["target"]) == ("translation", "en", "ko")
    assert found.data.get("columns") == (["en", "ko"] if header else None)
    assert found.sizes == {"train": 60}


def test_questions_and_replies_with_a_label_could_be_either(make: Make) -> None:
    rows = "".join(f"{KOREAN[i]}\t{KOREAN[-i]}\t{i // 20}\n" for i in range(60))
    path = make({"chat.tsv": f"question\tanswer\tlabel\n{rows}"}) / "chat.tsv"
    found, asked = seen(path)
    assert [question.option for question in asked] == ["--task"]
    assert (found.task, found.data["columns"], found.reply) == ("translation", ["question", "answer"], True)
    found, asked = seen(path, task="classification", text="question", label="label")
    assert (found.task, found.data["text"], asked) == ("classification", "question", [])


# texts with labels


@pytest.mark.parametrize("header", ["", "text\tlabel\n", "document\tsentiment\n", "무엇\t어떤것\n"])
def test_reviews(make: Make, header: str) -> None:
    found, asked = seen(make({"reviews.tsv": header + REVIEWS}) / "reviews.tsv")
    assert (found.task, found.metric, found.language, asked) == ("classification", "accuracy", "ko", [])
    assert found.sizes == {"train": 60}
    assert found.data.get("header") == (None if header else ["column1", "column2"])


def test_a_csv_with_commas_in_quotes(make: Make) -> None:
    rows = "".join(f'{i},"{text}, and ""so"" on",{i % 3}\n' for i, text in enumerate(ENGLISH))
    found, asked = seen(make({"a.csv": f"id,review,stars\n{rows}"}) / "a.csv")
    assert (found.data["text"], found.data["label"], found.language, asked) == ("review", "stars", "en", [])


def test_objects_with_several_labels(make: Make) -> None:
    objects = [{"body": text, "topics": ["a", "b"][: 1 + i % 2]} for i, text in enumerate(ENGLISH)]
    found, _ = seen(make({"a.jsonl": lines([*map(json.dumps, objects)])}) / "a.jsonl")
    assert (found.settings, found.metric, found.data["label"]) == ({"predicts": "labels"}, "micro_f1", "topics")


def test_pairs_with_a_number(make: Make) -> None:
    rows = "".join(f"{ENGLISH[i]}\t{ENGLISH[-i]}\t{i % 25 / 5}\n" for i in range(60))
    found, asked = seen(make({"a.tsv": f"text_a\ttext_b\tlabel\n{rows}"}) / "a.tsv")
    assert (found.settings, found.metric, found.data["pair"]) == ({"predicts": "number"}, "spearman", "text_b")
    assert asked == []


def test_two_columns_could_be_the_label(make: Make) -> None:
    rows = "".join(f"{text}\t{i % 2}\t{i % 3}\n" for i, text in enumerate(ENGLISH))
    path = make({"a.tsv": f"text\tsentiment\ttopic\n{rows}"}) / "a.tsv"
    (question,) = seen(path)[1]
    assert (question.option, set(question.choices)) == ("--label", {"sentiment", "topic"})
    found, asked = seen(path, label="sentiment")
    assert (found.data["label"], asked) == ("sentiment", [])
    assert refused(path, label="mood").code == "data.columns"


def test_labels_sorted_from_the_first_row_to_the_last(make: Make) -> None:
    rows = "".join(f"{text}\t{i // 30}\n" for i, text in enumerate(ENGLISH))
    assert seen(make({"a.tsv": f"text\tlabel\n{rows}"}) / "a.tsv")[0].task == "classification"


def test_rows_that_cannot_be_read_are_skipped_if_they_are_few(make: Make) -> None:
    path = make({"a.tsv": f"text\tlabel\n{REVIEWS}no label\nthree\tcells\there\n"}) / "a.tsv"
    found, _ = seen(path)
    assert (found.data["when_wrong"], found.sizes) == ("skip", {"train": 60})


def test_a_folder_for_each_class(make: Make) -> None:
    folder = make({f"{kind}/{i}.txt": f"{text}\nand more\n" for kind, texts in (("cats", ENGLISH), ("dogs", GERMAN))
                   for i, text in enumerate(texts)})  # fmt: skip
    found, _ = seen(folder)
    assert (found.task, found.sizes) == ("classification", {"train": 120})
    data = found.kind(**found.data)
    assert {example.gold for example in data.read("train", seed=1)} == {"cats", "dogs"}


# other tasks


def test_tags_whatever_the_file_is_called(make: Make) -> None:
    tags = "Kim B-PER\nlives O\nin O\nSeoul B-LOC\n\n" * 20
    for name in ("train.conll", "train.txt", "train.bio.gz"):
        found, _ = seen(make({name: tags}) / name)
        assert (found.task, found.metric, found.sizes) == ("tagging", "span_f1", {"train": 20})
        assert "LOC" in found.why[0]


def test_spans_relations_and_choices(make: Make) -> None:
    spans = {"text": "Kim lives", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    assert seen(make({"a.jsonl": lines([json.dumps(spans)] * 9)}) / "a.jsonl")[0].task == "tagging"
    related = {"text": "Ada met Bo", "head": {"start": 0, "end": 3}, "tail": {"start": 8, "end": 10}}
    both = [json.dumps({**related, "label": label}) for label in ("met", "Other")]
    found, _ = seen(make({"b.jsonl": lines(both * 9)}) / "b.jsonl")
    assert (found.task, found.settings) == ("relation", {"no_relation": "Other"})
    choice = {"context": "It rains, so she", "endings": ["runs", "sings"], "label": 0}
    assert seen(make({"c.jsonl": lines([json.dumps(choice)] * 9)}) / "c.jsonl")[0].task == "choice"


def test_questions(make: Make) -> None:
    asked = [
        {"id": "1", "question": "Where?", "answers": [{"text": "Seoul", "answer_start": 0}]},
        {"id": "2", "question": "Who?", "answers": [], "is_impossible": True},
    ]
    squad = json.dumps({"data": [{"paragraphs": [{"context": "Seoul is big.", "qas": asked}]}]})
    found, _ = seen(make({"train_a.json": squad, "dev_b.json.gz": squad}))
    assert (found.task, found.settings, found.sizes) == ("answering", {"no_answer": True}, {"train": 2, "dev": 2})


@pytest.mark.parametrize(
    ("files", "form"),
    [
        ({"train.txt": "One.\nTwo.\n\nThree.\n", "valid.txt": "Four.\n"}, "blank_line"),
        ({"novel.txt": "One.\nTwo.\nThree.\n"}, "line"),
        ({f"{i}.txt": "One.\nTwo.\n" for i in range(5)}, "file"),
        ({f"{part}/{i}.txt": "One.\n" for part in ("a",) for i in range(5)}, "file"),
    ],
)
def test_plain_text(make: Make, files: dict[str, str], form: str) -> None:
    found, _ = seen(make(files))
    assert (found.task, found.data["format"], found.metric) == ("language_model", form, "bits_per_byte")
    assert seen(make(files), task="pretraining")[0].task == "pretraining"
    assert refused(make(files), task="tagging").code == "input.task"


def test_texts_in_several_languages_have_no_language(make: Make) -> None:
    found, _ = seen(make({"a.txt": lines([text for both in zip(ENGLISH, KOREAN, strict=True) for text in both])}))
    assert "language" not in found.data
    assert any("ko" in sentence and "en" in sentence for sentence in found.why)


# what cannot be data


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"a.tsv": ""}, "data.empty"),
        ({"a.tsv": "text\tlabel\n"}, "data.empty"),
        ({"a.csv": "just\none\ncolumn\n"}, "data.columns"),
        ({"a.jsonl": ""}, "data.empty"),
        ({"a.conll": ""}, "data.empty"),
        ({"a.txt": ""}, "data.empty"),
        ({"a.tsv": "1\t2\n" * 50}, "data.no_text"),
        ({"notes.pdf": "x"}, "data.no_files"),
        ({".hidden.txt": "x", "README.txt": "x"}, "data.no_files"),
        ({"a.txt": "One.\n", "a.tsv": REVIEWS}, "data.different_kinds"),
        ({"dev.tsv": REVIEWS, "test.tsv": REVIEWS}, "data.no_train"),
        ({"a.json": '{"a": 1}\n{"a": 2}\n'}, "data.not_json"),
        ({"a.json": '[{"text": "a"}]'}, "data.json"),
    ],
)
def test_what_cannot_be_data(make: Make, files: dict[str, str], code: str) -> None:
    assert refused(make(files)).code == code


def test_what_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere.tsv").code == "data.missing"
    (tmp_path / "a.pdf").write_text("x", "utf-8")
    assert refused(tmp_path / "a.pdf").code == "data.unknown_kind"
