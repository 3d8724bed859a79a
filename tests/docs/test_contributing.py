"""CONTRIBUTING.md, followed: a task and a model are added to a copy of the source by what the page says and no more."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
ADDED = Path(__file__).parent / "added"
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


class Copy:
    """A copy of src/jumok, and a shell in which it is the jumok that runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, folder / "src/jumok"
        self._shell: subprocess.Popen[str] | None = None
        shutil.copytree(ROOT / "src/jumok", self.source, ignore=shutil.ignore_patterns("__pycache__"))

    def add_line(self, file: str, after: str, line: str) -> None:
        """One line after the only one that reads so."""
        path = self.source / file
        lines = path.read_text("utf-8").splitlines()
        assert lines.count(after) == 1, f"{file}: {after}"
        lines.insert(lines.index(after) + 1, line)
        path.write_text("\n".join(lines) + "\n", "utf-8")

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.source / file
        written = path.read_text("utf-8")
        assert written.count(old) == 1, f"{file}: {old}"
        path.write_text(written.replace(old, new), "utf-8")

    def __call__(self, *arguments: str, text: str = "", code: int = 0) -> str:
        """A command in a process of its own, forked from one that has read the copy as it was at the first command."""
        if self._shell is None:
            environment = {**os.environ, "PYTHONPATH": f"{self.folder / 'src'}:{ROOT / 'tests/faults'}"}
            command = [sys.executable, "-c", SHELL, str(self.folder / "shop")]
            self._shell = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(json.dumps([arguments, text]) + "\n")
        self._shell.stdin.flush()
        ended, out, err = json.loads(self._shell.stdout.readline())
        assert ended == code, f"{arguments}\n{out}\n{err}"
        return out

    def close(self) -> None:
        if self._shell is not None:
            self._shell.communicate(timeout=60)
            assert self._shell.returncode == 0


SHELL = """
import json, sys
from pathlib import Path
from shop import Shop

shop = Shop(Path(sys.argv[1]))
for line in sys.stdin:
    arguments, text = json.loads(line)
    ended = shop.end(shop.start(arguments, stdin=text.encode()), 300)
    print(json.dumps([ended.code, ended.out, ended.err]), flush=True)
"""


@pytest.fixture
def copy(tmp_path):
    found = Copy(tmp_path)
    yield found
    found.close()


def add_parity(copy):
    """One folder, the line of TASKS with its import, and a recipe."""
    shutil.copytree(ADDED / "parity", copy.source / "tasks/parity", ignore=shutil.ignore_patterns("__pycache__"))
    import_before = "from jumok.tasks.language_model import LanguageModelKind"
    copy.add_line("tasks/__init__.py", import_before, "from jumok.tasks.parity import ParityKind")
    copy.add_line("tasks/__init__.py", "    ChoiceKind(),", "    ParityKind(),")
    shutil.copy(ADDED / "parity.toml", copy.folder)


def test_a_task_is_a_folder_and_a_line_of_the_table(copy):
    add_parity(copy)
    shown = json.loads(copy("show", "parity.toml", "--json"))
    assert shown["recipe"]["task"] == {"kind": "parity"}
    assert shown["cost"]["parameters"]["total"] > 0
    examined = json.loads(copy("doctor", "parity.toml", "--json"))["findings"]
    assert examined
    assert all(finding["severity"] == "note" for finding in examined)
    (copy.folder / "wrong.tsv").write_text("text\tlabel\none two\teven\none two three\teven\n", "utf-8")
    mine = ["--set", "data={kind='labelled',train=['wrong.tsv'],dev=['wrong.tsv']}"]
    wrong = json.loads(copy("doctor", "parity.toml", *mine, "--json", code=2))["findings"]
    assert ("data.parity", "error", 2) in {(f["code"], f["severity"], f["count"]) for f in wrong}
    copy("train", "parity.toml", "--out", "run")
    test = json.loads(copy("evaluate", "run", "--json"))["splits"]["test"]
    assert test["scores"]["accuracy"]["value"] > 90
    found = json.loads(copy("predict", "run", "--json", text="bab dod\nbab dod kik\n"))["predictions"]
    assert [prediction["text"] for prediction in found] == ["even", "odd"]
    assert copy("predict", "run", text="bab dod\nbab dod kik\n") == "even\nodd\n"
    assert "parity" in copy("show", "run")
    assert "accuracy" in copy("compare", "run", "run")
    copy("doctor", "run")
    assert "even" in (copy.folder / "run/model/README.md").read_text("utf-8")


def test_a_model_is_a_file_a_case_and_a_member_of_the_union(copy):
    shutil.copy(ADDED / "bag.py", copy.source / "models/bag.py")
    build = "models/build.py"
    copy.add_line(
        build,
        "from jumok.models.head import Head",
        "from jumok.models.bag import BagClassifier, BagConfig",
    )
    copy.replace(build, "ModelConfig = TransformerConfig |", "ModelConfig = BagConfig | TransformerConfig |")
    copy.replace(build, "Model = (\n    Transformer\n", "Model = (\n    BagClassifier\n    | Transformer\n")
    copy.replace(
        build,
        "        case GptConfig():\n",
        "        case BagConfig():\n"
        "            return BagClassifier(c, vocab=source_vocab, n_labels=head.n_labels)\n"
        "        case GptConfig():\n",
    )
    fits = 'models = ("rnn", "bert", "gpt")'
    copy.replace("tasks/classification/__init__.py", fits, 'models = ("rnn", "bert", "gpt", "bag")')
    recipe = (ROOT / "recipes/toy/topics.toml").read_text("utf-8")
    bag = '[model]\nkind = "bag"\nd_model = 24\n\n'
    recipe, sections = re.subn(r"\[model\]\n.*?\n\n", bag, recipe, flags=re.DOTALL)
    assert sections == 1
    (copy.folder / "bag.toml").write_text(recipe, "utf-8")
    shown = json.loads(copy("show", "bag.toml", "--json"))
    assert shown["recipe"]["model"] == {"kind": "bag", "d_model": 24}
    assert shown["cost"]["training_flops"] > 0
    short = ["--set", "train.steps=100", "--set", "data.n_train=1000", "--set", "train.save_every=50"]
    copy("train", "bag.toml", "--out", "run", *short, "--set", "train.optimizer.learning_rate=0.05")
    scores = json.loads(copy("evaluate", "run", "--json"))["splits"]["test"]["scores"]
    assert scores["micro_f1"]["value"] > 60
    assert copy("predict", "run", text="the food was cheap\n").count("\n") == 1
    assert "bag" in copy("show", "run")
    copy("doctor", "run")
    copy("export", "run", "there", "--to", "huggingface", code=2)


def test_the_page_names_what_was_added():
    """What the tests above touch is what the page says."""
    for part in (
        "src/jumok/tasks/<name>/",
        "`__init__.py`",
        "`task.py`",
        "`predictor.py`",
        "`checks.py`",
        "`TASKS`",
        "`models/build.py`",
        "`ModelConfig`",
        "`models` of",
        "tests/docs/added",
    ):
        assert part in PAGE, part
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert link.startswith("http") or (ROOT / link).exists(), link
