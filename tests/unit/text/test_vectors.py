"""Word vectors: what a file says comes out, only wanted words are kept, and what is wrong is named to the line."""

import gzip
import sys
import tracemalloc
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.errors import DataError
from jumok.text.tokenizer import Tokenizer
from jumok.text.vectors import Embeddings, embeddings_from_vectors, read_vectors, surface_words
from jumok.text.vocabulary import EOS, EOS_ID, PAD, UNK, UNK_ID, Kind, TokenizerConfig

Write = Callable[[str, str | bytes], Path]
Table = dict[str, list[float]]

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
letters = st.characters(exclude_characters=" \n", exclude_categories=["Cs"])
# No byte order mark at the start of the file, no "\r" that would be part of a line's end.
parts = st.text(letters, min_size=1, max_size=8).filter(lambda text: text[0] != "\ufeff" and "\r" not in text)
values = st.floats(width=32, allow_nan=False, allow_infinity=False)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


words = st.lists(parts, min_size=1, max_size=3).filter(
    # A later part that is a number would be taken for a value; GloVe's words with spaces have none.
    lambda fields: not any(map(is_number, fields[1:]))
)


def tables(dimension: int) -> st.SearchStrategy[Table]:
    """Of two dimensions at least: a word of digits and one value could not be told from a header."""
    rows = st.lists(values, min_size=dimension, max_size=dimension)
    return st.dictionaries(words.map(" ".join), rows, min_size=1, max_size=6)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


def as_text(table: Table, *, header: bool = False, end: str = "\n") -> str:
    """A simple writer; str() of a float says enough digits for all of its bits."""
    lines = [f"{word} {' '.join(map(str, vector))}{end}" for word, vector in table.items()]
    if header:
        lines.insert(0, f"{len(table)} {len(next(iter(table.values())))}\n")
    return "".join(lines)


def anything(word: str) -> bool:
    return True


def as_lists(path: Path, wanted: object = anything, **options: bool) -> Table:
    return {word: row.tolist() for word, row in read_vectors(path, wanted, **options).vectors.items()}  # type: ignore[arg-type]


def refused(
    path: Path, code: str, line: int | None = None, wanted: object = anything, facts: Sequence[object] = ()
) -> DataError:
    with pytest.raises(DataError) as caught:
        read_vectors(path, wanted)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.where) == (f"data.{code}", f"{path}:{line}" if line else str(path))
    assert [fact for fact in facts if str(fact) not in caught.value.what] == []
    assert caught.value.hint
    return caught.value


class TestFormats:
    TABLE: Table = {"the": [0.5, -1.0, 2e-3], "한국어": [1.0, 2.0, 3.0], ",": [0.0, 0.0, 7.25]}

    @pytest.mark.parametrize("name", ["a.txt", "a.vec", "a.vec.gz"])
    @pytest.mark.parametrize("header", [True, False])
    @pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])  # word2vec and fastText write the last one
    def test_every_format(self, write: Write, name: str, header: bool, end: str) -> None:
        file = read_vectors(write(name, as_text(self.TABLE, header=header, end=end)), anything)
        assert (file.dimension, file.read, file.duplicates, file.first_duplicate) == (3, 3, 0, None)
        assert list(file.vectors) == list(self.TABLE)
        for word, vector in self.TABLE.items():
            assert file.vectors[word].dtype == np.float32
            np.testing.assert_array_equal(file.vectors[word], np.array(vector, dtype=np.float32))

    def test_the_last_line_may_lack_its_end_and_the_first_may_have_a_byte_order_mark(self, write: Write) -> None:
        assert as_lists(write("a", "\ufeffa 1 2\nb 3 4")) == {"a": [1, 2], "b": [3, 4]}
        assert as_lists(write("a", "\ufeff1 2\na 1 2")) == {"a": [1, 2]}

    def test_numbers_in_any_spelling(self, write: Write) -> None:
        path = write("a", "a 1 +1. -.5 1e-3 1E+2 00.10 1e-60\n")
        row = read_vectors(path, {"a"}).vectors["a"]
        np.testing.assert_array_equal(row, np.float32([1, 1, -0.5, 1e-3, 100, 0.1, 0]))

    @in_one_folder
    @given(st.integers(2, 6).flatmap(tables), st.booleans(), st.sampled_from(["a.vec", "a.vec.gz"]))
    def test_round_trip(self, write: Write, table: Table, header: bool, name: str) -> None:
        path = write(name, as_text(table, header=header))
        expected: dict[str, list[float]] = {}
        for word, row in table.items():
            expected.setdefault(unicodedata.normalize("NFC", word), row)
        file = read_vectors(path, anything)
        assert {word: row.tolist() for word, row in file.vectors.items()} == expected
        assert file.dimension == len(next(iter(table.values())))
        assert (file.read, file.duplicates) == (len(table), len(table) - len(expected))

    @pytest.mark.parametrize("header", [True, False])
    def test_words_with_spaces(self, write: Write, header: bool) -> None:
        table: Table = {". . .": [1, 2, 3], "at name@domain.com": [4, 5, 6], "the": [7, 8, 9]}
        assert as_lists(write("a", as_text(table, header=header))) == table
        assert as_lists(write("a", as_text(table, header=header)), {". . ."}) == {". . .": [1, 2, 3]}

    def test_words_of_odd_characters(self, write: Write) -> None:
        odd = [
            "10",
            "1e5",
            "nan",
            "a\xa0b",
            "\x85",
            "\u2028",
            "\t",
            "#",
            '"',
            "▁the",
            "</s>",
            "😀",
            "\ufeff",
            "1/2",
            "-",
        ]
        assert list(as_lists(write("a", "".join(f"{word} 1 2\n" for word in ["first", *odd])))) == ["first", *odd]

    def test_a_number_may_be_the_first_word(self, write: Write) -> None:
        assert as_lists(write("a", "2019 1 2\n2020 3 4\n")) == {"2019": [1, 2], "2020": [3, 4]}

    def test_jamo_become_syllables(self, write: Write) -> None:
        decomposed = unicodedata.normalize("NFD", "한국어")
        path = write("a", f"{decomposed} 1 2\ncafe\u0301 3 4\n")
        assert as_lists(path, {"한국어", "café"}) == {"한국어": [1, 2], "café": [3, 4]}


class TestWanted:
    def test_a_container_or_a_function(self, write: Write) -> None:
        path = write("a", "a 1 2\nb 3 4\nc 5 6\n")
        for wanted in ({"b", "x"}, ["b"], {"b": 7}, lambda word: word == "b"):
            assert as_lists(path, wanted) == {"b": [3, 4]}
        file = read_vectors(path, set())
        assert (file.vectors, file.dimension, file.read) == ({}, 2, 3)

    def test_the_first_of_several_counts(self, write: Write) -> None:
        decomposed = unicodedata.normalize("NFD", "가")
        path = write("a", f"5 2\nb 1 1\n가 1 2\nb 3 4\n{decomposed} 5 6\nb 7 8\n")
        file = read_vectors(path, {"가", "b"})
        assert {word: row.tolist() for word, row in file.vectors.items()} == {"b": [1, 1], "가": [1, 2]}
        assert (file.duplicates, file.first_duplicate) == (3, f"{path}:4")
        assert read_vectors(path, {"가"}).first_duplicate == f"{path}:5"
        assert read_vectors(path, {"x"}).duplicates == 0

    def test_case_counts_unless_told(self, write: Write) -> None:
        path = write("a", "The 1 2\nTHE 3 4\nthe 5 6\nSeoul 7 8\nSEOUL 9 9\n")
        wanted = {"the", "seoul"}
        assert as_lists(path, wanted) == {"the": [5, 6]}
        assert as_lists(path, wanted, lowercase=True) == {"the": [5, 6], "seoul": [7, 8]}
        assert read_vectors(path, wanted, lowercase=True).duplicates == 0

    @pytest.mark.parametrize(
        "word", ["ΟΔΟΣ", "İstanbul", "STRAẞE", unicodedata.normalize("NFD", "ÉCOLE"), "ǅ", "A\u0345"]
    )
    def test_case_is_folded_as_the_tokenizer_folds_it(self, write: Write, word: str) -> None:
        tokenizer = Tokenizer.train(TokenizerConfig(kind="word", vocab_size=8, lowercase=True), [word])
        piece = tokenizer.pieces(tokenizer.encode(word))[0].removeprefix("▁")
        assert as_lists(write("a", f"{word} 1 2\n"), {piece}, lowercase=True) == {piece: [1, 2]}

    def test_only_what_is_wanted_is_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "large.vec"
        with path.open("w") as file:
            file.write("200000 4\n")
            file.writelines(f"word{i} 0.125 0.25 0.5 {i}\n" for i in range(200_000))
        wanted = {f"word{i}" for i in range(0, 200_000, 20_000)}
        found = read_vectors(path, wanted)
        assert found.read == 200_000
        assert found.vectors.keys() == wanted
        assert found.vectors["word40000"].tolist() == [0.125, 0.25, 0.5, 40_000]
        assert all(row.base is None and row.nbytes == 16 for row in found.vectors.values())
        assert sum(map(sys.getsizeof, found.vectors.values())) < 5000

    def test_memory_does_not_grow_with_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "wide.vec"
        path.write_text("".join(f"word{i} {'0.125 ' * 300}\n" for i in range(5000)))
        tracemalloc.start()
        try:
            read_vectors(path, {"word7"})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < path.stat().st_size / 20

    def test_a_line_is_judged_before_the_next_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a.vec.gz"
        whole = gzip.compress(b"a 1 2\nb 3\n" + np.random.default_rng(1).bytes(200_000).hex("\n").encode())
        path.write_bytes(whole[: len(whole) // 2])
        refused(path, "columns", 2, facts=("1 values", "line 1 has 2"))


class TestBadFiles:
    @pytest.mark.parametrize("name", ["a.vec", "a.vec.gz"])
    def test_nothing_to_read(self, write: Write, tmp_path: Path, name: str) -> None:
        refused(write(name, ""), "empty")
        refused(write(name, "0 5\n"), "empty")
        assert "exists" in str(refused(tmp_path / f"absent-{name}", "unreadable").hint)
        refused(tmp_path, "unreadable")

    def test_torn_gzip(self, tmp_path: Path) -> None:
        path = tmp_path / "a.vec.gz"
        path.write_bytes(gzip.compress(b"a 1 2\n" * 1000)[:-9])
        refused(path, "torn", wanted=set())

    @pytest.mark.parametrize("line", ["", "  ", "word", "word x", "a\t1\t2", ". . ."])
    def test_a_first_line_without_values(self, write: Write, line: str) -> None:
        assert "COUNT DIMENSION" in str(refused(write("a", f"{line}\nb 1 2\n"), "columns", 1).hint)

    def test_a_header_of_no_dimension(self, write: Write) -> None:
        refused(write("a", "3 0\na\nb\nc\n"), "columns", 1)

    @pytest.mark.parametrize("wanted", [anything, set()])  # the shape of every line counts
    @pytest.mark.parametrize(
        ("line", "n"),
        [("b", 0), ("", 0), ("b 1", 1), ("b 1 2", 2), ("b 1 2 3 4", 4), ("b 1 2 3 4 5 6 7", 7), ("1 2 3", 2)],
    )
    def test_too_few_and_too_many_values(self, write: Write, line: str, n: int, wanted: object) -> None:
        plain, headed = write("a", f"a 1 2 3\n{line}\nc 1 2 3\n"), write("b", f"2 3\n{line}\nc 1 2 3\n")
        error = refused(plain, "columns", 2, wanted, (f"{n} values", "line 1 has 3"))
        assert "3 values" in str(error.hint)
        refused(headed, "columns", 2, wanted, (f"{n} values", "the header says 3"))

    def test_values_without_a_word(self, write: Write) -> None:
        for line in (" 1 2", "   1 2"):
            refused(write("a", f"a 1 2\n{line}\n"), "words", 2)

    @pytest.mark.parametrize(
        "value",
        ["x", "nan", "NaN", "inf", "-Infinity", "1e39", "-1e400", "1_0", "1,5", "0x1", "١", "1\t", "", "--1", "e"],
    )
    def test_what_is_no_finite_number(self, write: Write, value: str) -> None:
        path = write("a", f"3 3\na 1 2 3\nb 1 {value} 3\nc 1 2 3\n")
        error = refused(path, "not_a_number", 3, facts=("value 2 ", repr(value)))
        assert "-0.25" in str(error.hint)
        assert as_lists(path, {"a", "c"}) == {"a": [1, 2, 3], "c": [1, 2, 3]}  # nobody asked for b

    @pytest.mark.parametrize("line", ["a x 1 2", "a 1 x 2", "a nan 1 2", "a 1 nan 2"])
    def test_the_first_line_is_no_exception(self, write: Write, line: str) -> None:
        with pytest.raises(DataError) as caught:
            read_vectors(write("a", f"{line}\nb 1 2 3\n"), anything)
        assert "a:" in str(caught.value.where)

    def test_a_long_value_is_not_repeated_in_full(self, write: Write) -> None:
        path = write("a", f"2 2\na 1 2\nb {'x' * 9999} 2\n")
        assert len(refused(path, "not_a_number", 3, facts=["value 1 "]).what) < 100

    @pytest.mark.parametrize("wanted", [anything, set()])
    def test_the_header_counts(self, write: Write, wanted: object) -> None:
        refused(write("a", "4 2\na 1 2\nb 1 2\n"), "counts", 1, wanted, (4, 2))
        refused(write("a", "4 2\n"), "counts", 1, wanted, (4, 0))
        refused(write("a", "1 2\na 1 2\nb 1 2\nc\n"), "counts", 3, wanted, (1, "more"))

    def test_digits_without_end_are_no_header(self, write: Write) -> None:
        refused(write("a", f"a {'9' * 5000}\n"), "not_a_number", 1, facts=["value 1 "])
        refused(write("a", f"9 {'9' * 5000}\n"), "not_a_number", 1, facts=["value 1 "])

    @pytest.mark.parametrize("name", ["a.vec", "a.vec.gz"])
    def test_invalid_utf8(self, write: Write, name: str) -> None:
        path = write(name, "가 1 2\n".encode() + b"b\xff 1 2\n")
        with pytest.raises(DataError) as caught:
            read_vectors(path, set())
        assert (caught.value.code, caught.value.where) == ("data.encoding", f"{path}:2, byte 2")
        assert "0xff" in caught.value.what


LINES = ["the cat, the dog; it's a Café", "고양이 와 개 , the end."]


def trained(kind: Kind, **options: object) -> tuple[Tokenizer, TokenizerConfig]:
    config = TokenizerConfig(kind=kind, **{"vocab_size": 320, **options})  # type: ignore[arg-type]
    return Tokenizer.train(config, LINES * 3), config


def fill(path: Path, kind: Kind = "word", *, seed: int = 1, **options: object) -> tuple[Tokenizer, Embeddings]:
    tokenizer, config = trained(kind, **options)
    return tokenizer, embeddings_from_vectors(path, tokenizer, config, seed=seed)


def found_pieces(tokenizer: Tokenizer, embeddings: Embeddings) -> set[str]:
    return set(tokenizer.pieces([int(i) for i in np.flatnonzero(embeddings.found)]))


class TestSurface:
    def test_word(self) -> None:
        pieces = [EOS, UNK, "▁the", "s", ",", "▁", "▁고양이", "##a", PAD]
        assert surface_words(pieces, "word") == [EOS, UNK, "the", "s", ",", None, "고양이", "##a", None]

    @pytest.mark.parametrize("kind", ["bpe", "character"])
    def test_bpe(self, kind: Kind) -> None:
        pieces = [EOS, UNK, "<0x41>", "▁the", "ing", "e", ",", "$", "。", "▁", "▁e", "▁▁", PAD]
        expected = [EOS, UNK, None, "the", None, None, ",", "$", "。", None, "e", "▁", None]
        assert surface_words(pieces, kind) == expected

    def test_wordpiece(self) -> None:
        pieces = [EOS, UNK, "the", "##ing", ",", "##,", "#", PAD]
        assert surface_words(pieces, "wordpiece") == [EOS, UNK, "the", None, ",", None, "#", None]


class TestEmbeddings:
    TABLE: Table = {"</s>": [9, 9, 9], "the": [1, 2, 3], ",": [4, 5, 6], "고양이": [-1, 0, 1], "unseen": [0, 0, 0]}

    def test_found_rows_are_the_vectors(self, write: Write) -> None:
        tokenizer, filled = fill(write("a.vec", as_text(self.TABLE, header=True)))
        matrix, found, report = filled
        assert (matrix.shape, matrix.dtype) == ((tokenizer.vocab_size, 3), np.float32)
        assert (found.shape, found.dtype) == ((tokenizer.vocab_size,), np.bool_)
        assert found_pieces(tokenizer, filled) == {EOS, "▁the", ",", "▁고양이"}
        assert matrix[tokenizer.encode("the 고양이")].tolist() == [[1, 2, 3], [-1, 0, 1]]
        assert matrix[EOS_ID].tolist() == [9, 9, 9]
        assert (report.dimension, report.read, report.duplicates) == (3, 5, 0)
        assert (report.found, report.vocabulary) == (4, tokenizer.vocab_size - 1)
        assert report.unknown == tokenizer.vocab_size - 5
        assert report.coverage == pytest.approx(4 / (tokenizer.vocab_size - 1))
        assert report.text_coverage is None

    @pytest.mark.parametrize("kind", ["word", "bpe", "wordpiece"])
    def test_every_kind_finds_the_word(self, write: Write, kind: Kind) -> None:
        tokenizer, filled = fill(write("a", as_text(self.TABLE)), kind)
        [the] = tokenizer.encode("the")
        assert filled.matrix[the].tolist() == [1, 2, 3]
        pieces = found_pieces(tokenizer, filled)
        assert pieces - {"▁고양이", "고양이"} == {EOS, ",", "the" if kind == "wordpiece" else "▁the"}

    def test_one_vector_for_all_pieces_of_a_word(self, write: Write) -> None:
        tokenizer, filled = fill(write("a", "s 1 2\na 3 4\n"))
        assert found_pieces(tokenizer, filled) == {"s", "▁a"}

    def test_unknown_rows_are_as_wide_as_the_found_ones(self, write: Write) -> None:
        rng = np.random.default_rng(3)
        table = {word: rng.normal(5.0, 0.3, 400).tolist() for word in ("the", "cat", ",")}
        path = write("a", as_text(table))
        _, (matrix, found, _) = fill(path)
        known, unknown = matrix[found], matrix[~found][:-1]  # the last is <pad>
        assert len(unknown) > 5
        assert unknown.std() == pytest.approx(known.std(), rel=0.05)
        assert abs(unknown.mean()) < 0.05
        assert np.isfinite(matrix).all()
        assert not np.array_equal(unknown[0], unknown[1])

    def test_pad_stays_zero_even_if_the_file_has_it(self, write: Write) -> None:
        tokenizer, (matrix, found, report) = fill(write("a", "<pad> 1 2\n<unk> 3 4\n"))
        assert matrix[tokenizer.pad_id].tolist() == [0, 0]
        assert matrix[UNK_ID].tolist() == [3, 4]
        assert np.flatnonzero(found).tolist() == [UNK_ID]
        assert report.found == 1

    def test_the_seed_decides(self, write: Write) -> None:
        path = write("a", as_text(self.TABLE))
        first, same, other = (fill(path, seed=seed)[1] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first.matrix, same.matrix)
        unknown = np.flatnonzero(~first.found)[:-1]
        assert (first.matrix[unknown] != other.matrix[unknown]).all()
        np.testing.assert_array_equal(first.matrix[first.found], other.matrix[other.found])

    @pytest.mark.parametrize("lines", ["x 1 2 3 4\n", "the 2 2 2 2\n"])
    def test_nothing_to_measure_a_deviation_by(self, write: Write, lines: str) -> None:
        _, (matrix, found, report) = fill(write("a", lines))
        assert report.found == found.sum() <= 1
        assert matrix[~found][:-1].std() == pytest.approx(0.5, rel=0.3)

    def test_case_follows_the_tokenizer(self, write: Write) -> None:
        path = write("a", "Cat 1 2\nCAFÉ 3 4\nDog 5 6\ndog 7 8\n")
        tokenizer, folded = fill(path, lowercase=True)
        assert found_pieces(tokenizer, folded) == {"▁cat", "▁café", "▁dog"}
        assert folded.matrix[tokenizer.encode("dog")].tolist() == [[7, 8]]
        tokenizer, exact = fill(path)
        assert found_pieces(tokenizer, exact) == {"▁dog"}

    def test_coverage_of_the_text(self, write: Write) -> None:
        tokenizer, config = trained("word")
        counts = [0] * tokenizer.vocab_size
        for i in tokenizer.encode("the the the cat"):
            counts[i] += 1
        counts[tokenizer.pad_id] = 1000
        path = write("a", "the 1 2\n")
        report = embeddings_from_vectors(path, tokenizer, config, seed=1, counts=counts).report
        assert report.text_coverage == 0.75
        assert "(75.0% of the text)" in str(report)
        nothing = [0] * tokenizer.vocab_size
        assert embeddings_from_vectors(path, tokenizer, config, seed=1, counts=nothing).report.text_coverage == 0.0
        with pytest.raises(ValueError, match="counts of 3 ids"):
            embeddings_from_vectors(path, tokenizer, config, seed=1, counts=[1, 2, 3])

    def test_the_report_in_words(self, write: Write) -> None:
        path = write("a", "the 1 2\nthe 1 2\n")
        tokenizer, (_, _, report) = fill(path)
        share = f"{1 / (tokenizer.vocab_size - 1):.1%}"
        facts = (f"1 of {tokenizer.vocab_size - 1} tokens", "2 values", f"{share};", "1 duplicates", f"{path}:2")
        assert [fact for fact in facts if fact not in str(report)] == []
