"""A chat: every line is answered or explained, whatever is typed; replies alone are the output."""

import builtins
import io
import itertools
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jumok.chat import HELP, LONGEST, PROMPT, chat_in_terminal, converse
from jumok.cli import app
from jumok.decode.options import DecodeConfig
from jumok.engines.torch import TorchEngine
from jumok.errors import InputError, RunError
from jumok.examples.made.numbers import generate
from jumok.models.transformer import Transformer, TransformerConfig
from jumok.tasks.protocol import Failure
from jumok.tasks.translation import TranslationFacts
from jumok.tasks.translation.predictor import Translator
from jumok.text.tokenizer import Tokenizer, Tokenizers
from jumok.text.vocabulary import Kind, TokenizerConfig


class Echo:
    """A predictor that answers with what it was asked, in capitals, and remembers how it was asked."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], str] | None = None) -> None:
        self.answer = answer or (lambda text, options: text.upper())
        self.asked: list[str] = []
        self.options: list[dict[str, Any]] = []

    def predict(self, texts: list[str], **options: Any) -> list[SimpleNamespace | Failure]:
        [text] = texts
        text.encode()  # as every tokenizer needs it
        self.asked.append(text)
        self.options.append(options)
        try:
            return [SimpleNamespace(text=self.answer(text, options))]
        except InputError as error:
            return [Failure.of(error)]

    def wanted(self, options: Mapping[str, Any]) -> None:
        if "bean" in options:
            raise InputError("there is no option bean", hint="did you mean beam?", code="input.unknown_option")


def talk(*lines: str, predictor: Any = None, **settings: Any) -> tuple[list[str], list[str]]:
    said: list[str] = []
    notes: list[str] = []
    converse(predictor or Echo(), lines, said.append, notes.append, **settings)
    return said, notes


def refuse(error: Exception) -> Callable[[str, dict[str, Any]], str]:
    def answer(text: str, options: dict[str, Any]) -> str:
        if "bad" in text:
            raise error
        return text.upper()

    return answer


class TestReplies:
    def test_a_reply_for_a_line(self) -> None:
        predictor = Echo()
        assert talk("hello", " 안녕 \n", predictor=predictor, options={"beam": 2}) == (["HELLO", "안녕"], [])
        assert predictor.asked == ["hello", "안녕"]
        assert predictor.options == [{"beam": 2}, {"beam": 2}]

    def test_answered_before_the_next_line_is_asked_for(self) -> None:
        said: list[str] = []

        def lines() -> Iterator[str]:
            yield "a"
            assert said == ["A"]
            yield "b"
            assert said == ["A", "B"]

        converse(Echo(), lines(), said.append, said.append)
        assert said == ["A", "B"]

    @pytest.mark.parametrize(
        "reply", ["two\nlines", "two\r\nlines", "two\u2028lines", "two\x1b\x07lines\n", "two\x85lines"]
    )
    def test_a_reply_is_one_line_and_moves_no_cursor(self, reply: str) -> None:
        assert talk("x", predictor=Echo(lambda text, options: reply)) == (["two lines"], [])

    def test_an_empty_reply_is_a_line_too(self) -> None:
        assert talk("x", "y", predictor=Echo(lambda text, options: "")) == (["", ""], [])


class TestHistory:
    def test_none_by_default(self) -> None:
        predictor = Echo()
        talk("a", "b", predictor=predictor)
        assert predictor.asked == ["a", "b"]

    def test_the_last_exchanges_come_before_the_input(self) -> None:
        for history, last in ((1, "c C d"), (2, "b B c C d"), (9, "a A b B c C d")):
            predictor = Echo(lambda text, options: text[-1].upper())
            talk("a", "b", "c", "d", predictor=predictor, history=history)
            assert predictor.asked[-1] == last

    def test_commands_and_failures_are_no_exchanges(self) -> None:
        predictor = Echo(refuse(InputError("no")))
        talk("a", "bad", "", "/help", "b", predictor=predictor, history=5)
        assert predictor.asked[-1] == "a A b"

    def test_what_has_no_room_is_left_out_from_the_oldest(self) -> None:
        for spare, asked in ((4, ["a", "a r {}", "{} r b", "b r c"]), (3, ["a", "{}", "b", "b r c"])):
            predictor = Echo(lambda text, options: "r")
            long = "x" * (LONGEST - spare)
            assert talk("a", long, "b", "c", predictor=predictor, history=3) == (["r"] * 4, [])
            assert predictor.asked == [text.format(long) for text in asked]

    def test_a_model_with_less_room_gets_fewer_exchanges(self) -> None:
        def short_only(text: str, options: dict[str, Any]) -> str:
            if len(text) > 4:
                raise InputError("a text has too many pieces")
            return "r"

        predictor = Echo(short_only)
        assert talk("a", "b", "cc", "ddddd", "e", predictor=predictor, history=2)[0] == ["r"] * 4
        assert predictor.asked == ["a", "a r b", "b", "a r b r cc", "b r cc", "cc"] + predictor.asked[6:]
        assert predictor.asked[-1] == "e"

    def test_shown(self) -> None:
        said, notes = talk("/history", "hi", "ho", "/history")
        assert said == ["HI", "HO"]
        assert notes == ["nothing yet", "> hi\nHI\n> ho\nHO"]


class TestAgain:
    @staticmethod
    def by_seed(text: str, options: dict[str, Any]) -> str:
        return f"{text}{options['seed']}" if options.get("method") == "sample" else text

    def test_another_reply_is_sampled(self) -> None:
        predictor = Echo(self.by_seed)
        assert talk("a", "/again", "/again", "b", "/again", predictor=predictor)[0] == ["a", "a2", "a3", "b", "b2"]
        assert predictor.options[1] == {"top_p": 0.9, "method": "sample", "n_best": 1, "seed": 2}

    def test_options_are_kept(self) -> None:
        predictor = Echo(self.by_seed)
        options = {"beam": 8, "n_best": 8, "method": "beam", "seed": 2**63 - 1, "temperature": 0.5, "top_p": 0.4}
        talk("a", "/again", predictor=predictor, options=options)
        assert predictor.options[1] == {**options, "method": "sample", "n_best": 1, "seed": 0}

    def test_the_same_reply_is_drawn_anew(self) -> None:
        predictor = Echo(lambda text, options: "other" if options.get("seed", 0) > 3 else "same")
        assert talk("a", "/again", predictor=predictor)[0] == ["same", "other"]
        stubborn = Echo(lambda text, options: "same")
        assert talk("a", "/again", "/again", predictor=stubborn)[0] == ["same"] * 3
        assert len({options.get("seed") for options in stubborn.options}) == len(stubborn.options) < 20

    def test_it_takes_the_place_of_the_last_reply(self) -> None:
        predictor = Echo(self.by_seed)
        _, notes = talk("a", "b", "/again", "/history", "c", predictor=predictor, history=1)
        assert notes == ["> a\na\n> b\na a b2"]
        assert predictor.asked == ["a", "a a b", "a a b", "b a a b2 c"]

    def test_nothing_to_answer_yet(self) -> None:
        said, notes = talk("/again", "a")
        assert said == ["A"]
        assert "nothing to answer again" in notes[0]

    def test_a_failure_leaves_the_talk_as_it_was(self) -> None:
        def never_sampled(text: str, options: dict[str, Any]) -> str:
            if options:
                raise InputError("no sampling here")
            return text.upper()

        said, notes = talk("a", "/again", "/history", predictor=Echo(never_sampled))
        assert said == ["A"]
        assert ["no sampling here" in notes[0], notes[1]] == [True, "> a\nA"]


class TestCommands:
    @pytest.mark.parametrize("quit_line", ["/quit", " /quit \n", "/QUIT"])
    def test_quit(self, quit_line: str) -> None:
        assert talk("a", quit_line, "b") == (["A"], [])

    def test_help_names_every_command(self) -> None:
        assert talk("/help") == ([], [HELP])
        assert all(command in HELP for command in ("/again", "/history", "/help", "/quit", "Ctrl-D"))

    def test_unknown_commands_are_not_sent_to_the_model(self) -> None:
        said, notes = talk("/exit", "/", "/usr/bin where?", "/ㅋㅋ")
        assert said == ["/", "/USR/BIN WHERE?", "/ㅋㅋ"]
        assert len(notes) == 1
        assert notes[0].startswith("there is no /exit")


class TestOddInput:
    @pytest.mark.parametrize("line", ["", " ", "\t \n", "\x00\x1b\x7f", "\u3000\xa0", "\u2028"])
    def test_nothing_to_answer(self, line: str) -> None:
        predictor = Echo()
        assert talk(line, predictor=predictor) == ([], ["nothing to answer: the line is empty"])
        assert predictor.asked == []

    def test_control_characters_are_spaces(self) -> None:
        predictor = Echo()
        talk("a\x00b\x1b[31mc\r\n", "😀 👩\u200d👧", predictor=predictor)
        assert predictor.asked == ["a b [31mc", "😀 👩\u200d👧"]

    def test_halves_of_pairs_are_replaced_with_a_note(self) -> None:
        predictor = Echo()
        said, notes = talk("a\ud800b", b"\xec\x95 x\xff".decode(errors="surrogateescape"), predictor=predictor)
        assert predictor.asked == ["a\ufffdb", "\ufffd\ufffd x\ufffd"]
        assert len(said) == 2
        assert ["1 places" in notes[0], "3 places" in notes[1]] == [True, True]

    def test_a_line_without_end(self) -> None:
        predictor = Echo()
        said, notes = talk("x" * 100_000, "y" * LONGEST, "z", predictor=predictor, history=3)
        assert said == ["Y" * LONGEST, "Z"]
        assert len(notes) == 1
        assert "too long: 100000 characters" in notes[0]
        assert f"at most {LONGEST} characters" in notes[0]

    @pytest.mark.parametrize(
        "error",
        [
            InputError("too many pieces", hint="fewer", code="text.too_long"),
            RunError("x"),
            RuntimeError("no memory"),
            MemoryError(),
        ],
    )
    def test_what_goes_wrong_is_told_and_the_talk_goes_on(self, error: Exception) -> None:
        said, notes = talk("bad", "good", predictor=Echo(refuse(error)))
        assert said == ["GOOD"]
        assert notes == [f"no reply: {str(error) or 'MemoryError'}"]

    def test_a_wrong_option_is_no_matter_of_the_line(self) -> None:
        predictor = Echo()
        with pytest.raises(InputError) as caught:
            talk("a", "b", predictor=predictor, options={"bean": 2}, history=3)
        assert caught.value.code == "input.unknown_option"
        assert predictor.asked == []

    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.one_of(st.text(), st.text("/aginqut \ud800\x00"), st.just("/again")), max_size=8), st.integers(0, 3)
    )
    def test_any_lines(self, lines: list[str], history: int) -> None:
        said, notes = talk(*lines, history=history)
        assert not any(unicodedata.category(character) == "Cc" for reply in said for character in reply)
        n_asked = len(list(itertools.takewhile(lambda line: "/quit" not in line.lower(), lines)))
        assert len(said) + len(notes) >= n_asked


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_true_model_survives_what_a_keyboard_can_do(kind: Kind) -> None:
    """No training: whatever the weights are, every line has to be answered."""
    texts = [text for pair in generate("korean_numbers", "train", n=50, seed=1) for text in pair]
    vocabulary = Tokenizer.train(TokenizerConfig(kind=kind, vocab_size=300), texts)
    tokenizers = Tokenizers(vocabulary, vocabulary)
    torch.manual_seed(1)
    config = TransformerConfig(d_model=16, d_ff=16, n_heads=2, n_layers=1)
    model = Transformer(config, source_vocab=vocabulary.vocab_size, target_vocab=vocabulary.vocab_size).eval()

    decode = DecodeConfig(method="greedy", max_extra=3)
    real = Translator(TorchEngine([model], tokenizers), tokenizers, TranslationFacts(decode=decode))
    lines = ["two", "/again", "ㅎㅇ 😀 ☃", "\ud800", "\x01\x1c", "x" * 100_000, "፨" * 30, "</s> <pad> <unk>"]
    said, notes = talk(*lines, predictor=real, history=2)
    assert len(said) == 6
    assert [note.split(":")[0] for note in notes] == [
        "the line is not valid Unicode",
        "nothing to answer",
        "no reply",
    ]


class TestCommandLine:
    @pytest.fixture
    def predictor(self, monkeypatch: pytest.MonkeyPatch) -> Echo:
        predictor = Echo()
        monkeypatch.setattr("jumok.predictor.load", lambda run, **_: predictor)
        return predictor

    def test_lines_in_replies_out(self, predictor: Echo) -> None:
        typed = "안녕\r\n\n/history\nhi\n".encode() + b"\xff\xfe\n" + b"/nothing\nlast"
        result = CliRunner().invoke(app, ["chat", "RUN", "--history", "1", "--set", "beam=2"], input=typed)
        assert result.exit_code == 0
        assert predictor.asked[:3] == ["안녕", "안녕 안녕 hi", "hi 안녕 안녕 HI \ufffd\ufffd"]
        assert predictor.asked[3].endswith(" last")
        assert result.stdout == "".join(f"{text.upper()}\n" for text in predictor.asked)
        assert predictor.options == [{"beam": 2}] * 4
        assert "the line is empty" in result.stderr
        assert "> 안녕\n안녕" in result.stderr
        assert "2 places" in result.stderr
        assert PROMPT not in result.stdout  # nobody sits at a terminal

    @pytest.mark.parametrize("typed", ["", "/quit\nnever\n"])
    def test_ends_well(self, predictor: Echo, typed: str) -> None:
        result = CliRunner().invoke(app, ["chat", "RUN"], input=typed)
        assert (result.exit_code, result.output) == (0, "")

    def test_ctrl_c(self, predictor: Echo) -> None:
        predictor.answer = refuse(KeyboardInterrupt())  # type: ignore[arg-type]
        result = CliRunner().invoke(app, ["chat", "RUN"], input="good\nbad\nnever\n")
        assert (result.exit_code, result.output) == (0, "GOOD\n")

    def test_wrong_options(self, predictor: Echo) -> None:
        assert CliRunner().invoke(app, ["chat", "RUN", "--history", "-1"], input="a\n").exit_code == 2
        result = CliRunner().invoke(app, ["chat", "RUN", "--set", "bean=2"], input="a\n")
        assert isinstance(result.exception, InputError)
        assert result.exception.code == "input.unknown_option"
        assert predictor.asked == []


class Terminal(io.TextIOWrapper):
    """A stream that somebody sits at."""

    def isatty(self) -> bool:
        return True


class TestTerminal:
    @pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
    def test_a_prompt_and_a_polite_end(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], end: type
    ) -> None:
        typed: list[Any] = ["hi", "안녕", end()]
        prompts: list[str] = []

        def keyboard(prompt: str) -> str:
            prompts.append(prompt)
            line = typed.pop(0)
            if isinstance(line, BaseException):
                raise line
            return str(line)

        monkeypatch.setattr(builtins, "input", keyboard)
        monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"never"), encoding="utf-8"))
        monkeypatch.setattr(sys, "stdout", Terminal(screen := io.BytesIO(), encoding="latin-1"))  # not all are UTF-8
        chat_in_terminal(Echo(), history=0, options={})
        assert prompts == [PROMPT] * 3
        assert screen.getvalue() == b"HI\n??\n"
        assert sys.stdin.errors == "surrogateescape"
        assert capsys.readouterr().err.endswith("\nBye.\n")

    def test_the_prompt_stays_out_of_a_file(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"x\n"), encoding="utf-8"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file := io.BytesIO(), encoding="utf-8"))
        chat_in_terminal(Echo(), history=0, options={})
        assert file.getvalue() == b"X\n"
        assert capsys.readouterr().err.count(PROMPT) == 2
