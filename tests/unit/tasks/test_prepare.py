"""Data prepared for a task: once for all runs, and refused before anything is trained."""

from pathlib import Path
from typing import Any

import pytest

from jumok.data.cache import Cache
from jumok.errors import DataError
from jumok.recipe import Recipe, parse_recipe
from jumok.text.tokenizer import Tokenizer
from jumok.text.vocabulary import EOS_ID

KINDS = {"classification": "labelled", "tagging": "tagged", "language_model": "text"}
WRONG = {
    "classification": b"text\tlabel\na fox\tx\na dog\n",
    "tagging": b"a O\n\nfox\n",
    "language_model": b"a\n\nb\xff\n",
}
CONTENT = {
    "classification": "text\tlabel\na fox\tx\na dog\ty\na cat\tx\n",
    "tagging": "a O\nFox B-X\n\na O\ndog O\n\nCat B-X\n",
    "language_model": "a fox\na dog\nthe cat\n",
}
each_task = pytest.mark.parametrize("task", KINDS)


def prepare(recipe: Recipe, cache: Path) -> Any:
    return recipe.kind.prepare(recipe, Cache(cache))


class Files:
    """The files of a recipe, and the recipe prepared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, split: str, content: str) -> str:
        path = self.folder / split
        path.write_text(content, "utf-8")
        return str(path)

    def prepare(self, task: str, *splits: str, tokenizer: str = "word", **data: Any) -> Any:
        files = {split: [str(self.folder / split)] for split in splits}
        tree = {
            "task": {"kind": task},
            "data": {"kind": KINDS[task], **files, **data},
            "tokenizer": {"kind": tokenizer, "vocab_size": 300},
            "model": {"kind": "rnn"},
        }
        return prepare(parse_recipe(tree, where="test"), self.folder / "cache")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@each_task
def test_data_is_prepared_once(files: Files, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("train", CONTENT[task])
    files.write("dev", CONTENT[task])
    first = files.prepare(task, "train", "dev")
    with monkeypatch.context() as patch:
        patch.setattr(Tokenizer, "train", lambda *_: pytest.fail("trained again"))
        patch.setattr("jumok.tasks.prepare.build_shards", lambda *_, **__: pytest.fail("built again"))
        again = files.prepare(task, "train", "dev")
    assert again.train.folder == first.train.folder
    assert again.tokenizers.source.sha256 == first.tokenizers.source.sha256
    assert again.labels == first.labels
    assert files.prepare(task, "train", "dev", max_len=100).train.folder != first.train.folder


@each_task
def test_shards_hold_what_the_files_say(files: Files, task: str) -> None:
    files.write("train", CONTENT[task])
    files.write("dev", CONTENT[task])
    found = files.prepare(task, "train", "dev", tokenizer="character")
    fields, encode = found.train.fields, found.tokenizers.source.encode
    assert len(found.train) == 3
    match task:
        case "classification":
            assert found.labels == ["x", "y"]
            assert [fields["label"][i].tolist() for i in range(3)] == [[0], [1], [0]]
            texts = [[*encode(text), EOS_ID] for text in ("a fox", "a dog", "a cat")]
        case "tagging":
            assert found.labels == ["O", "B-X"]
            assert [fields["tag"][i].tolist() for i in range(3)] == [[0, 1], [0, 0], [1]]
            assert [fields["first"][i].tolist() for i in range(3)] == [[0, 2], [0, 2], [0]]
            texts = [[*encode(text), EOS_ID] for text in ("a Fox", "a dog", "Cat")]
        case _:
            assert found.labels == []
            texts = [[*encode(text), EOS_ID] for text in ("a fox", "a dog", "the cat")]
    assert [fields["text"][i].tolist() for i in range(3)] == texts


@each_task
def test_dev_data_is_needed(files: Files, task: str) -> None:
    files.write("train", CONTENT[task])
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train")
    assert (caught.value.code, caught.value.where) == ("data.empty", "data.dev")
    assert "data.dev_share" in (caught.value.hint or "")
    empty = files.write("dev", "text\tlabel\n" if task == "classification" else "")
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train", "dev")
    assert (caught.value.code, caught.value.where) == ("data.empty", empty)


@each_task
def test_a_share_serves_as_dev_and_its_words_are_not_learned_from(files: Files, task: str) -> None:
    lines = [f"word{i}" for i in range(200)]
    match task:
        case "classification":
            content = "text\tlabel\n" + "".join(f"{line}\t{i % 2}\n" for i, line in enumerate(lines))
        case "tagging":
            content = "".join(f"{line} {'O' if i % 2 else 'B-X'}\n\n" for i, line in enumerate(lines))
        case _:
            content = "".join(f"{line}\n" for line in lines)
    files.write("train", content)
    found = files.prepare(task, "train", dev_share=0.2, test_share=0.1)
    assert 100 < len(found.train) < 180
    assert 20 < len(found.dev) < 60
    known = set(found.tokenizers.source.pieces(range(found.tokenizers.source.vocab_size)))
    words = {getattr(e, "text", None) or (e if isinstance(e, str) else e.words[0]) for e in found.dev}
    assert len(words) == len(found.dev)
    assert not {f"▁{word}" for word in words} & known
    assert len(known) == len(found.train) + 3  # every word of the training side, and three special pieces


@each_task
def test_texts_that_cannot_be_trained_on_are_counted(files: Files, task: str) -> None:
    long = "a " * 8
    match task:
        case "classification":
            train, counts = f"text\tlabel\na\tx\nb\ty\n\tx\n  \ty\n{long}\tx\n", [5, 2, 0, 1]
        case "tagging":
            train, counts = "a O\nb X\n\n" + "a O\n" * 8 + "\n", [2, 0, 0, 1]
        case _:
            train, counts = f"a b\n\n  \n{long}\n", [4, 2, 0]  # cut instead
    files.write("train", train)
    files.write("dev", CONTENT[task].replace("B-X", "X"))
    found = files.prepare(task, "train", "dev", max_len=7)
    facts = found.train.facts
    assert [facts[name] for name in ("read", "empty", "too_long", "long") if name in facts] == counts
    if task != "language_model":  # a long text is read in two windows
        assert [len(found.train.fields["text"][i]) for i in range(len(found.train))] == {
            "classification": [2, 2, 7, 7],
            "tagging": [3, 7, 7],
        }[task]


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_texts_that_are_too_long_may_be_cut_or_refused(files: Files, task: str) -> None:
    train = {"classification": f"text\tlabel\nb\ty\n{'a ' * 8}\tx\n", "tagging": "b X\n\n" + "a O\n" * 8}[task]
    path = files.write("train", train)
    files.write("dev", CONTENT[task].replace("B-X", "X"))
    cut = files.prepare(task, "train", "dev", max_len=7, long_texts="truncate")
    assert [len(cut.train.fields["text"][i]) for i in range(len(cut.train))] == [2, 7]
    assert cut.train.facts["long"] == 1
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train", "dev", max_len=7, long_texts="refuse")
    assert (caught.value.code, caught.value.where) == ("data.too_long", f"{path}:3")
    assert "8 tokens" in caught.value.what
    assert "room for 6" in caught.value.what
    windows = [files.prepare(task, "train", "dev", max_len=7, stride=stride).train.folder for stride in (0, 3)]
    assert len({*windows, cut.train.folder}) == 3  # each is prepared for itself


@pytest.mark.parametrize(
    ("task", "train", "code"),
    [
        ("classification", "text\tlabel\na\tx\nb\tx\n", "data.few_labels"),
        ("classification", "text\tlabel\n \tx\n\ty\n", "data.empty_corpus"),
        ("tagging", "a O\nb O\n", "data.one_tag"),
        ("language_model", "\n  \n", "data.empty_corpus"),
        ("classification", "text\tlabel\n", "data.empty_corpus"),
        ("tagging", "", "data.empty_corpus"),
    ],
)
def test_a_corpus_that_cannot_be_learned_from_is_refused(files: Files, task: str, train: str, code: str) -> None:
    path = files.write("train", train)
    files.write("dev", CONTENT[task])
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train", "dev", max_len=7)
    assert (caught.value.code, caught.value.where) == (code, path)


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize(("label", "meant"), [("z", None), ("positiv", "positive")])
def test_an_unknown_label_is_named_before_anything_is_trained(
    files: Files, split: str, label: str, meant: str | None
) -> None:
    for name in ("train", "dev", "test"):
        files.write(name, "text\tlabel\na fox\tpositive\na dog\tnegative\n")
    path = files.write(split, f"text\tlabel\na fox\tpositive\na dog\t{label}\n")
    with pytest.raises(DataError) as caught:
        files.prepare("classification", "train", "dev", "test")
    assert (caught.value.code, caught.value.where) == ("data.unknown_label", f"{path}:3")
    assert repr(label) in caught.value.what
    hint = caught.value.hint or ""
    assert "negative, positive" in hint
    assert (f"did you mean {meant}?" in hint) if meant else ("did you mean" not in hint)


def test_a_column_that_is_not_there_is_told_the_nearest(files: Files) -> None:
    path = files.write("train", "sentense\tlabel\na fox\tx\na dog\ty\n")
    files.write("dev", "sentense\tlabel\na fox\tx\n")
    with pytest.raises(DataError) as caught:
        files.prepare("classification", "train", "dev", text="sentence")
    assert caught.value.code == "data.columns"
    assert caught.value.where in (f"{path}:1", f"{files.folder / 'dev'}:1")
    assert "sentence" in caught.value.what
    assert "did you mean sentense?" in (caught.value.hint or "")


@each_task
@pytest.mark.parametrize("split", ["dev", "test"])
def test_what_cannot_be_read_is_named_before_anything_is_learned(
    files: Files, task: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("train", "dev", "test"):
        files.write(name, CONTENT[task])
    (files.folder / split).write_bytes(WRONG[task])
    monkeypatch.setattr(Tokenizer, "train", lambda *_: pytest.fail("learned something"))
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train", "dev", "test")
    assert (caught.value.where or "").partition(",")[0] == f"{files.folder / split}:3"


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize(("content", "line"), [("a\tb\nalone\n", ":2"), ("source\ttarget\na\tb\n", ":1"), ("", "")])
def test_held_out_pairs_are_read_before_anything_is_learned(
    files: Files, split: str, content: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: dict[str, Any] = {"kind": "parallel", "source": "en", "target": "ko"}
    for name in ("train", "dev", "test"):
        path = files.write(f"{name}.tsv", "a\tb\nc\td\n")
        data[name] = [[path]] if name == "train" else [path]
    path = files.write(f"{split}.tsv", content)
    monkeypatch.setattr(Tokenizer, "train", lambda *_: pytest.fail("learned something"))
    with pytest.raises(DataError) as caught:
        prepare(parse_recipe({"data": data}, where="test"), files.folder / "cache")
    assert caught.value.where == f"{path}{line}"


@each_task
def test_a_test_file_without_an_example_is_refused_and_none_at_all_is_not(files: Files, task: str) -> None:
    for name in ("train", "dev"):
        files.write(name, CONTENT[task])
    path = files.write("test", "text\tlabel\n" if task == "classification" else "")
    with pytest.raises(DataError) as caught:
        files.prepare(task, "train", "dev", "test")
    assert (caught.value.code, caught.value.where) == ("data.empty", path)
    assert len(files.prepare(task, "train", "dev").train) == 3


def pretraining(files: Files, **sections: Any) -> Any:
    tree = {"task": {"kind": "pretraining"}, "tokenizer": {"kind": "wordpiece", "vocab_size": 60}, **sections}
    return prepare(parse_recipe({"model": {"kind": "bert"}, **tree}, where="test"), files.folder / "cache")


@pytest.mark.parametrize(("share", "empty"), [(0.001, "dev"), (0.999, "train")])
def test_one_document_cannot_be_divided(files: Files, share: float, empty: str) -> None:
    path = files.write("train", "A cat sleeps.\nIt runs.\n")
    with pytest.raises(DataError) as caught:
        pretraining(files, data={"kind": "documents", "train": [path], "dev_share": share})
    assert (caught.value.code, caught.value.where) == ("data.empty_side", path)
    assert f"no {empty} data: 1 document," in caught.value.what
    assert "data.dev " in (caught.value.hint or "")
    assert "data.format" in (caught.value.hint or "")


def test_few_examples_may_all_fall_on_one_side(files: Files) -> None:
    path = files.write("train", CONTENT["language_model"])
    with pytest.raises(DataError) as caught:
        files.prepare("language_model", "train", dev_share=0.001)
    assert (caught.value.code, caught.value.where) == ("data.empty_side", path)
    assert "no dev data: 3 examples," in caught.value.what
    assert "data.format" not in (caught.value.hint or "")
    files.write("train", "")
    with pytest.raises(DataError) as caught:
        files.prepare("language_model", "train", dev_share=0.001)
    assert caught.value.code == "data.empty"


@pytest.mark.parametrize(("content", "code"), [(b"One.\n\nTw\xff.\n", "data.encoding"), (b"\n", "data.empty")])
def test_the_old_domain_is_read_before_anything_is_learned(files: Files, content: bytes, code: str) -> None:
    train, dev = files.write("train", "A cat. It runs."), files.write("dev", "A dog. It sleeps.")
    (files.folder / "old").write_bytes(content)
    data = {"kind": "documents", "train": [train], "dev": [dev]}
    with pytest.raises(DataError) as caught:
        pretraining(files, data=data, init="weights", old_domain={"test": [str(files.folder / "old")]})
    assert caught.value.code == code
    assert str(caught.value.where).startswith(str(files.folder / "old"))
    assert "data." not in str(caught.value.hint)
