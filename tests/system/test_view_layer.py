"""The view layer and the store of the page, each alone, in a browser."""

import pytest


@pytest.fixture
def module(visit):
    """Runs a function with modules of the page in a document that is otherwise empty; what it returns comes back."""
    page = visit("/health", tolerate=["404"])  # browsers ask for an icon of a bare document

    def run(name: str, body: str, argument: object = None) -> object:
        source = f"async (given) => {{ const m = await import('/page/{name}'); {body} }}"
        return page.evaluate(source, argument)

    run.page = page
    return run


LIST = """
  document.body.replaceChildren();
  let names = given.before;
  const draw = m.mount(document.body, () => names.map((name) => m.h("input", { key: name, id: name })));
  const before = new Map([...document.body.children].map((el) => [el.id, el]));
  document.getElementById(given.focus)?.focus();
  names = given.after;
  draw();
  await Promise.resolve();
  return {
    order: [...document.body.children].map((el) => el.id),
    same: [...document.body.children].filter((el) => before.get(el.id) === el).map((el) => el.id),
    focus: document.activeElement.id,
  };
"""


@pytest.mark.parametrize(
    ("before", "after", "focus"),
    [
        ("abc", "abcd", "b"),
        ("abc", "xabc", "b"),
        ("abc", "ac", "c"),
        ("abc", "axbyc", "b"),
        ("abcd", "bcd", "d"),
        ("", "ab", ""),
        ("abc", "", ""),
    ],
)
def test_keyed_elements_stay_themselves_and_keep_the_focus(module, before, after, focus):
    found = module("view.js", LIST, {"before": [*before], "after": [*after], "focus": focus})
    assert found["order"] == [*after]
    assert found["same"] == [name for name in after if name in before]
    assert found["focus"] == focus


def test_keyed_elements_are_moved_not_made_anew(module):
    found = module("view.js", LIST, {"before": [*"abcde"], "after": [*"edcba"], "focus": ""})
    assert (found["order"], found["same"]) == ([*"edcba"], [*"edcba"])


def test_properties_attributes_styles_and_events(module):
    found = module(
        "view.js",
        """
        document.body.replaceChildren();
        const said = [];
        const act = (n) => () => said.push(n);
        let shown = { class: "a", "aria-pressed": false, disabled: false, style: { color: "red" }, onClick: act(1) };
        const draw = m.mount(document.body, () => m.h("button", shown, "go"));
        const button = document.querySelector("button");
        const look = () => [button.className, button.getAttribute("aria-pressed"), button.disabled, button.style.color];
        const seen = [look()];
        button.click();
        shown = { class: "b", "aria-pressed": true, onClick: act(2) };
        draw();
        await Promise.resolve();
        button.click();
        seen.push(look());
        shown = { disabled: true };
        draw();
        await Promise.resolve();
        button.click();
        seen.push(look());
        return { seen, said };
        """,
    )
    assert found["seen"] == [["a", "false", False, "red"], ["b", "true", False, ""], ["", None, True, ""]]
    assert found["said"] == [1, 2]


def test_text_is_text_and_nothing_is_shown_for_null_and_false(module):
    hostile = "<img src=x onerror=alert(1)>\u202e😀&amp;"
    found = module(
        "view.js",
        """
        document.body.replaceChildren();
        m.mount(document.body, () => m.h("p", { title: given }, null, false, given, 0, [[" x"]]));
        const p = document.querySelector("p");
        return [p.textContent, p.title, p.children.length];
        """,
        hostile,
    )
    assert found == [f"{hostile}0 x", hostile, 0]


def test_what_draws_itself_is_set_up_once_updated_and_destroyed(module):
    found = module(
        "view.js",
        """
        document.body.replaceChildren();
        const log = [];
        const setup = (el, props) => {
          log.push(["setup", el.tagName, props.data]);
          return { update: (props) => log.push(["update", props.data]), destroy: () => log.push(["destroy"]) };
        };
        let data = 1;
        const draw = m.mount(document.body, () => data && m.h("div", {}, m.h("canvas", { key: "c", setup, data })));
        for (data of [2, 3, 0]) { draw(); await Promise.resolve(); }
        return log;
        """,
    )
    assert found == [["setup", "CANVAS", 1], ["update", 2], ["update", 3], ["destroy"]]


def test_a_value_that_was_typed_stays_unless_the_view_changes_it(module):
    found = module(
        "view.js",
        """
        document.body.replaceChildren();
        let note = "1";
        const draw = m.mount(document.body, () => [m.h("textarea", { class: note }), m.h("p", {}, note)]);
        const area = document.querySelector("textarea");
        area.value = "typed";
        note = "2";
        draw();
        await Promise.resolve();
        return [area.value, area.isConnected, document.querySelector("p").textContent];
        """,
    )
    assert found == ["typed", True, "2"]


@pytest.mark.parametrize(
    "text",
    ["plain", "a&b=c#d%20+e", "여러분 안녕", "\u202eRTL", "😀", "<script>alert(1)</script>", "line\nline", "x" * 5000],
)
def test_the_state_goes_through_the_url(module, text):
    found = module(
        "store.js",
        """
        m.begin(() => {});
        m.go({ text: given, layer: 3 });
        const address = m.address();
        m.go({ text: null, layer: null });
        const emptied = location.hash;
        location.hash = address;
        await new Promise((done) => setTimeout(done, 50));
        return { ...m.state, emptied };
        """,
        text,
    )
    assert (found["text"], found["layer"], found["emptied"]) == (text, "3", "")


def test_hostile_values_of_the_url_are_only_texts(module):
    hostile = "#__proto__=x&constructor=y&lang=<b>&theme=../..&room=%ff&text=%ED%A0%80"
    found = module(
        "store.js",
        """
        location.hash = given;
        m.begin(() => {});
        m.go({ lone: "\\ud800" });
        return {
          lang: m.state.lang, theme: m.state.theme, plain: {}.x === undefined,
          texts: Object.values(m.state).every((value) => typeof value === "string"),
        };
        """,
        hostile,
    )
    assert found == {"lang": "en", "theme": "system", "plain": True, "texts": True}
