"""The room Training: runs that have finished, run, stop and die; what is on screen stays what the log says."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from page import PHONE, Visits, check_access, check_width, picture
from playwright.sync_api import expect
from served import Served

FEW = [word for key in ("n_train=500", "n_dev=8", "n_test=8") for word in ("--set", f"data.{key}")]
FEW += ["--set", "train.evaluate_every=50", "--set", "train.threads=1"]
HOSTILE = "<img src=x onerror=alert(1)>\u202e😀 &amp;"


def step(n: int, loss: float | None = None) -> dict[str, object]:
    facts = {"epoch": 0, "learning_rate": 0.1, "grad_norm": 1.0, "tokens": 100, "seconds": 0.1, "parts": {}}
    return {"event": "step", "time": 1000.0 + n, "step": n, "loss": 5 / n if loss is None else loss, **facts}


def sampled(n: int, *outputs: str) -> dict[str, object]:
    samples = [{"source": f"source {i}", "gold": "a b c", "output": output} for i, output in enumerate(outputs)]
    return {"event": "sampled", "time": 1000.0 + n, "step": n, "samples": samples}


def write(run: Path, *events: dict[str, object], mode: str = "a") -> None:
    with (run / "events.jsonl").open(mode) as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


@pytest.fixture(autouse=True, scope="module")
def patience():
    """The page looks for news of a run every second, and for new runs every four."""
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def made(jumok, reversed_run, tmp_path_factory):
    """A server of a trained toy and of runs that are written by hand, and the folder they are in."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(reversed_run, folder / "reverse")
    served = Served(jumok, "--runs", folder)
    yield served, folder
    assert served.stop() == 0


@pytest.fixture
def look(browser, made):
    """Opens the room on a run of the folder."""
    visits = Visits(browser, made[0].address)

    def open_room(run: str, **more):
        return visits(room="training", run=run, **more)

    yield open_room
    visits.close()


@pytest.fixture
def begun(made, reversed_run):
    """Makes a run that has a recipe and these events, and whose process has gone."""

    def make(name: str, *events: dict[str, object]) -> Path:
        run = made[1] / name
        run.mkdir()
        shutil.copy(reversed_run / "recipe.json", run)
        write(run, *events)
        return run

    return make


def stepped(page) -> str:
    """How many steps the page tells of."""
    return page.locator(".figures dd").first.inner_text().split(" of ")[0].replace(",", "")


def unfold(page) -> None:
    """Open what a phone folds away."""
    expect(page.locator(".findings summary").first).to_be_visible()  # they are asked for after the curve
    for summary in page.locator("details.section > summary").all():
        summary.click()
    page.get_by_text(re.compile(r"^4( more|개 더 보기)$")).click()


def rows(page, chart: str) -> list[list[str]]:
    """The table behind a chart."""
    details = page.locator(f"#chart-{chart} details")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    expect(details.locator("tbody tr").first).to_be_visible()
    return [row.locator("th, td").all_inner_texts() for row in details.locator("tbody tr").all()]


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_a_finished_run(look, reversed_run, lang, phone):
    page = look("reverse", lang=lang, phone=phone)
    expect(page.locator(".state.finished")).to_be_visible()
    expect(page.locator(".sample").first).to_be_visible()
    if phone:
        expect(page.locator("#chart-loss canvas").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollHeight") < 3 * PHONE["height"]
        check_access(page)
        unfold(page)
    expect(page.locator(".chart")).to_have_count(4)
    expect(page.locator(".sample")).to_have_count(6)
    expect(page.locator(".findings li").first).to_be_visible()
    expect(page.locator("a.button.main")).to_have_attribute("href", re.compile("room=use"))
    check_width(page)
    check_access(page)
    picture(page, f"training-{lang}-{'phone' if phone else 'desktop'}", whole=True)
    last = rows(page, "score")[-1]
    events = [json.loads(line) for line in (reversed_run / "events.jsonl").read_text().splitlines()]
    evaluated = [event for event in events if event["event"] == "evaluated"]
    assert last[0] == str(evaluated[-1]["step"])
    assert float(last[1]) == pytest.approx(evaluated[-1]["scores"]["exact_match"], abs=0.6)
    assert page.evaluate("document.querySelector('.plot canvas').width") > 100


def test_samples_get_better_under_the_slider(look):
    page = look("reverse")
    slider = page.get_by_role("slider", name="Answers at step")
    slider.focus()
    last = page.locator(".sample").all_inner_texts()
    page.keyboard.press("Home")
    expect(page.locator(".slider output")).to_have_text("step 6")
    assert page.locator(".sample").all_inner_texts() != last
    assert page.locator(".sample.right").count() == 0
    expect(page).to_have_url(re.compile("at=6"))
    page.keyboard.press("ArrowRight")
    expect(page.locator(".slider output")).to_have_text("step 12")
    for _ in range(20):  # the first answers may be alike
        if page.locator("mark.changed").count():
            break
        page.keyboard.press("ArrowRight")
    expect(page.locator("mark.changed").first).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator(".sample.right").first).to_be_visible()
    assert page.locator(".sample").all_inner_texts() == last


def test_one_cursor_for_all_charts_by_keyboard(look):
    page = look("reverse")
    plots = page.locator(".plot")
    expect(plots).to_have_count(4)
    plots.nth(0).focus()
    page.keyboard.press("Home")
    for n in range(4):
        expect(plots.nth(n)).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowRight")
    for n in range(4):
        expect(plots.nth(n)).to_have_attribute("aria-valuenow", "67")
        assert "step 67" in plots.nth(n).get_attribute("aria-valuetext")
    page.keyboard.press("Escape")
    expect(plots.nth(2)).to_have_attribute("aria-valuenow", "600")
    assert "none" not in plots.nth(0).evaluate("el => getComputedStyle(el).outlineStyle")


def test_what_is_on_screen_is_saved(look, tmp_path):
    page = look("reverse")
    chart = page.locator("#chart-loss")
    for kind, content in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"\xef\xbb\xbfstep,training")):
        with page.expect_download() as got:
            chart.get_by_role("button", name=kind).click()
        file = tmp_path / got.value.suggested_filename
        got.value.save_as(file)
        assert file.read_bytes().startswith(content)
    lines = file.read_text("utf-8-sig").splitlines()
    assert len(lines) == 601


def test_smoothing_never_bends_the_past(look):
    page = look("reverse")
    found = page.evaluate(
        """async () => {
          const m = await import("/page/plot.js");
          const points = Array.from({ length: 200 }, (_, n) => [n + 1, ((n * 37) % 11) + 5 / (n + 1)]);
          const [all, some] = [points, points.slice(0, 120)].map((one) => m.smoothed(one, 20));
          const low = [[1, 1], [2, 3], [3, 2], [4, null], [5, 9]];
          return {
            same: some.every(([step, value], i) => all[i][0] === step && all[i][1] === value),
            ends: [some.at(-1)[0], all.at(-1)[0]], first: all[0][1] === points[0][1], off: m.smoothed(low, 0) === low,
            medians: m.smoothed(low, 2), before: [m.before(low, 0), m.before(low, 3.5)], ticks: m.ticks(0, 7, 5),
          };
        }"""
    )
    assert found["same"]
    assert found["first"]
    assert found["off"]
    assert found["ends"] == [110, 190]
    assert found["medians"] == [[1, 1], [2, 2], [3, 2.5], [4, 5.5]]
    assert found["before"] == [None, [3, 2]]
    assert found["ticks"] == [0, 2, 4, 6]


def test_hostile_samples_are_text(look, begun):
    begun("hostile", step(1), sampled(1, "x"), step(2), sampled(2, HOSTILE))
    page = look("hostile")
    expect(page.locator(".said")).to_contain_text("<img src=x")
    assert page.locator(".samples img").count() == 0


def test_a_run_that_appears_goes_on_tears_a_line_and_begins_anew(look, begun, made):
    page = look("later", tolerate=["404"])
    expect(page.get_by_text("Waiting for later")).to_be_visible()
    planned = {"event": "planned", "time": 1000.0, "step": 0, "steps": 400, "minutes": 1, "seconds_per_step": 0.1}
    extended = {"event": "extended", "time": 1001.5, "step": 1, "before": 400, "steps": 600}
    run = begun("later", planned, step(1), extended, {"event": "resumed", "time": 1001.6, "step": 1}, step(2))
    expect(page.locator(".state.died")).to_be_visible()
    assert stepped(page) == "2"
    with (run / "events.jsonl").open("a") as file:
        file.write(json.dumps(step(3))[:30])
    expect(page.locator(".figures dd").first).to_have_text("2 of 600")
    with (run / "events.jsonl").open("a") as file:
        file.write(json.dumps(step(3))[30:] + "\n")
    expect(page.locator(".figures dd").first).to_have_text("3 of 600")
    write(run, step(1, 9.0), mode="w")
    expect(page.locator(".figures dd").first).to_have_text("1 of 600")
    assert [row[:2] for row in rows(page, "loss")] == [["1", "9"]]


def faulty() -> list[dict[str, object]]:
    """A training that has spikes, gets slower and learns its text by heart."""
    told: list[dict[str, object]] = []
    for n in range(1, 401):
        loss = (1 + 3 / n) * (3 if n in (120, 230, 340) else 1) - n / 2000
        told.append(step(n, loss) | {"seconds": 0.1 if n < 300 else 0.5})
        if n % 100 == 0:
            scores = {"perplexity": 3.0 + n / 100, "bleu": 10.0, "exact_match": 1.0}
            told.append({"event": "evaluated", "time": 1000.0 + n, "step": n, "scores": scores, "best": n == 100})
    return told


def test_the_doctor_speaks_the_language_of_the_reader(look, begun):
    begun("faulty", *faulty())
    english = look("faulty").locator(".findings")
    expect(english).to_contain_text("3 spikes in 400 steps")
    korean = look("faulty", lang="ko", phone=True)
    found = korean.locator(".findings")
    found.locator("summary").first.click()
    found.get_by_text("처음 몇 번의 값").click()
    expect(found.locator("> details > ul > li")).to_have_count(4)
    text = found.inner_text()
    for fact in (
        "3번",
        "400단계",
        "1.39",
        "1.95",
        "1,000",
        "200",
    ):  # spikes, the dev loss from ln 4 to ln 7, tokens per second
        assert fact in text, fact
    left = set(re.findall(r"[A-Za-z_.]{2,}", text)) - {"clip_norm", "train.patience", "train.final", "best", "BLEU"}
    assert not left
    assert found.locator("[lang=en]").count() == 0
    check_width(korean)
    check_access(korean)


def test_a_finding_without_words_of_the_page_keeps_those_of_the_server(look, begun):
    begun("odd", step(1))
    page = look("odd", lang="ko")
    message = "Something new."
    one = {"code": "curve.new", "severity": "note", "count": 1, "share": 1.0, "message": message, "examples": []}
    page.route("**/findings", lambda route: route.fulfill(json={"findings": [one], "marks": []}))
    page.reload()
    said = page.locator(".findings [lang=en]")
    expect(said).to_have_text(message)
    expect(page.locator(".findings code")).to_have_text("curve.new")


def test_a_step_that_was_told_twice_counts_once(look, begun):
    told = [step(1, 4.0), step(2, 3.0), step(3, 99.0), {"event": "resumed", "step": 1, "time": 1.0}, step(2, 2.0)]
    begun("twice", *told)
    page = look("twice")
    assert [row[:2] for row in rows(page, "loss")] == [["1", "4"], ["2", "2"]]
    expect(page.locator("#chart-loss .legend")).to_contain_text("resumed")


def test_runs_overlaid_with_the_difference_of_their_recipes(look, begun):
    begun("one", *(step(n) for n in range(1, 40)))
    other = begun("two, and more", *(step(n) for n in range(1, 30)))
    stored = json.loads((other / "recipe.json").read_text())
    stored["recipe"]["train"]["optimizer"]["learning_rate"] = 0.5
    (other / "recipe.json").write_text(json.dumps(stored))
    page = look("one")
    page.get_by_role("checkbox", name="two, and more").focus()
    page.keyboard.press("Space")
    table = page.get_by_role("region", name="Where the recipes differ")
    expect(table.locator("tbody tr")).to_have_count(1)
    assert table.locator("tbody tr").inner_text().split() == ["train.optimizer.learning_rate", "0.003", "0.5"]
    expect(page.locator("#chart-loss .legend")).to_contain_text("two, and more · training")
    again = look(
        "one", **{"with": re.search(r"with=([^&]+)", page.url)[1].replace("%252C", "%2C").replace("%2520", "%20")}
    )
    expect(again.get_by_role("checkbox", name="two, and more")).to_be_checked()
    check_access(page)
    narrow = look("one", phone=True, **{"with": "two%2C%20and%20more"})
    expect(narrow.locator("#chart-loss .legend")).to_contain_text("two, and more")
    check_width(narrow)


def test_watched_live_killed_resumed_and_stopped(look, made, jumok, recipes):
    run = made[1] / "live"
    command = ("train", recipes / "toy/reverse.toml", "--out", run, *FEW, "--set", "train.steps=100000")
    command += ("--set", "train.save_every=20")
    page = look("live", tolerate=["404"])
    expect(page.get_by_text("Waiting for live")).to_be_visible()
    with _ended(jumok.start(*command)) as process:
        expect(page.locator(".state.running")).to_be_visible(timeout=60_000)
        expect(page.locator(".sample").first).to_be_visible()
        expect(page.locator(".figures dd").first).to_have_text(re.compile(r"^([3-9]\d|\d{3,}|[\d,]{5,}) of"))
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        expect(page.locator(".state.died")).to_be_visible()
        expect(page.locator("button.stop")).to_have_count(0)
    with _ended(jumok.start(*command)) as process:
        expect(page.locator(".state.running")).to_be_visible(timeout=60_000)
        expect(page.locator("#chart-loss .legend")).to_contain_text("resumed")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Stop training")).to_be_focused()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Stop").press("Enter")
        page.keyboard.press("Enter")
        expect(page.locator(".state.stopped")).to_be_visible(timeout=30_000)
        assert process.wait(20) == 128 + signal.SIGTERM
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines() if line.endswith("}")]
    assert events[-1]["reason"] == "interrupted"
    told = [float(row[0].replace(",", "")) for row in rows(page, "loss")]
    assert told == sorted(set(told))
    assert told[-1] == events[-1]["step"]


class _ended:
    """A process that does not outlive its block, nor its pipes."""

    def __init__(self, process) -> None:
        self.process = process

    def __enter__(self):
        return self.process

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def test_the_end_of_a_training_that_is_watched_shows_where_to_go(look, made, jumok, recipes):
    run = made[1] / "short"
    page = look("short", lang="ko", tolerate=["404"])
    command = (
        "train",
        recipes / "toy/reverse.toml",
        "--out",
        run,
        *FEW,
        "--set",
        "train.steps=60",
        "--set",
        "train.save_every=30",
    )
    with _ended(jumok.start(*command)) as process:
        while not (run / "checkpoints").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)  # it takes two seconds, and the page looks for new runs every four
        expect(page.locator(".state.running")).to_be_visible(timeout=60_000)
        process.send_signal(signal.SIGCONT)
        expect(page.locator(".ready.note")).to_be_visible(timeout=60_000)
        assert process.wait(20) == 0
    page.get_by_role("link", name="써 보기").click(timeout=60_000)
    expect(page.locator(".room.use")).to_be_visible()
    expect(page).to_have_url(re.compile("run=short"))


def test_a_run_that_is_not_finished_is_used_with_its_best_checkpoint(browser, made, jumok, recipes):
    run = made[1] / "begun"
    more = ("--set", "train.steps=5000", "--set", "train.save_every=10")
    with _ended(jumok.start("train", recipes / "toy/reverse.toml", "--out", run, *FEW, *more)) as process:
        while not list(run.glob("checkpoints/step-*")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    visits = Visits(browser, made[0].address)
    page = visits(room="use", run="begun")
    expect(page.locator(".banner")).to_contain_text("5,000")
    expect(page.locator(".room.use")).to_be_visible()
    check_access(page)
    page = visits(run="begun")
    expect(page.locator(".room.training")).to_be_visible()
    expect(page.locator(".banner")).to_have_count(0)
    visits.close()
