"""LibreTranslate's real client, and the requests that Weblate and Mastodon send, against a server with an API key."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI
from served import Served

from jumok import load

KEY = "a-key-of-some-length"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def served(jumok, runs, tmp_path_factory):
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text(KEY, "utf-8")
    found = Served(jumok, "--runs", runs("translation").folder.parent, "--api-key-file", key)
    yield found
    assert found.stop() == 0


@pytest.fixture(scope="module")
def translator(served, runs):
    """On the engine that the server uses."""
    return load(runs("translation").folder)


def test_the_client_translates_detects_and_lists(served, translator):
    client = LibreTranslateAPI(served.address, KEY)
    assert {"code": "en", "name": "en", "targets": ["xx"]} in client.languages(timeout=60)
    assert client.detect("the dog is here", timeout=60)[0]["language"] == "en"
    (expected,) = translator(["the dog sits"])
    assert client.translate("the dog sits", "en", "xx", timeout=60) == expected
    assert client.translate("the dog\n\nsits here\n", "en", "xx", timeout=60).count("\n") == 3
    with pytest.raises(HTTPError) as refused:
        LibreTranslateAPI(served.address, "another").translate("the dog", "en", "xx", timeout=60)
    assert refused.value.code == 403
    refused.value.close()


def weblate(served: Served, path: str, **fields: str):
    """A form; Weblate's `languages` is a GET without a body."""
    return served.fetch("POST", path, urlencode(fields).encode(), **{"content-type": FORM})


def test_the_form_that_weblate_sends(served, translator):
    """Its requests are form-encoded, the key is a field, which is empty if none is set."""
    text = "the dog & a cat\n<b>sit</b> 비"
    status, headers, content = weblate(served, "/translate", api_key=KEY, q=text, source="en", target="xx")
    assert (status, headers["content-type"]) == (200, "application/json")
    lines = translator(text.splitlines())
    assert json.loads(content) == {"translatedText": "\n".join(lines)}
    assert weblate(served, "/translate", api_key="", q=text, source="en", target="xx")[0] == 403
    status, _, content = weblate(served, "/translate", api_key=KEY, q=text, source="de", target="xx")
    assert (status, list(json.loads(content))) == (400, ["error"])


def mastodon(served: Served, q, **changes):
    body = {"q": q, "source": "auto", "target": "xx", "format": "html", "api_key": KEY, **changes}
    status, headers, content = served.fetch(
        "POST", "/translate", json.dumps(body).encode(), **{"content-type": "application/json"}
    )
    return status, headers, json.loads(content)


LINK = '<a href="https://a.example/?x=1&amp;y=2" rel="nofollow">'
POST = f"<p>the dog {LINK}sits here</a></p><p>a cat<br />runs <b>today</b></p>"


def test_the_json_that_mastodon_sends(served, translator):
    """HTML, the language unknown; later versions send several texts at once."""
    status, _, found = mastodon(served, POST)
    assert status == 200
    assert found["detectedLanguage"]["language"] == "en"
    html = found["translatedText"]
    assert html.startswith("<p>")
    assert [
        html.count(tag) for tag in ('<a href="https://a.example/?x=1&amp;y=2" rel="nofollow">', "</a>", "<br />")
    ] == [
        1,
        1,
        1,
    ]
    assert [html.count(tag) for tag in (LINK, "</a>", "<br />")] == [1, 1, 1]
    assert [html.count(tag) for tag in ("<p>", "</p>", "<b>", "</b>")] == [2, 2, 1, 1]
    status, _, several = mastodon(served, [POST, "", "<p>the dog</p>"])
    assert several["translatedText"][:2] == [html, ""]
    assert [one["language"] for one in several["detectedLanguage"]] == ["en"] * 3
    assert mastodon(served, POST, api_key="wrong")[0] == 403
    assert mastodon(served, POST, api_key=None)[0] == 403


def test_an_aligned_model_moves_tags_with_their_words(served, translator):
    """The toy writes the words from last to first; its tags go with them."""
    found = mastodon(served, "<b>the dog</b> sits <i>here</i> today", source="en")[2]["translatedText"]
    text = found.replace("<b>", "").replace("</b>", "").replace("<i>", "").replace("</i>", "")
    assert [text] == translator(["the dog sits here today"])
    assert found.count("<b>") == found.count("</b>") == 1


def test_a_busy_server_says_when_to_come_again(served):
    """Mastodon takes 429 for `try later`."""
    long = " ".join(["the dog sits here today and runs slowly a cat"] * 2)
    body = ["\n".join([long] * 4)] * 250  # 1,000 sentences: those of two requests are more than may wait
    with ThreadPoolExecutor(4) as clients:
        found = [*clients.map(lambda _: mastodon(served, body, format="text"), range(4))]
    assert {status for status, _, _ in found} == {200, 429}
    headers, error = next((headers, found) for status, headers, found in found if status == 429)
    assert int(headers["retry-after"]) >= 1
    assert list(error) == ["error"]


@pytest.mark.parametrize("format", ["text", "html"])
def test_too_much_is_refused_and_much_is_answered(served, format):
    status, _, found = mastodon(served, "a" * 100_001, format=format, source="en")
    assert (status, found["error"]) == (400, "Invalid request: request (100001) exceeds text limit (100000)")
    status, _, found = mastodon(
        served, "a b.\n" * 2000 if format == "text" else "<p>a b." * 2000, format=format, source="en"
    )
    assert (status, "1,024" in found["error"]) == (400, True)
    status, _, found = mastodon(served, "가" * 100_000, format=format, source="en")  # one sentence
    assert (status, "20,000" in found["error"]) == (400, True)
    assert mastodon(served, "<!--" * 24_000 + "the dog", format="html", source="en")[0] == 200
    assert mastodon(served, ["<p>the dog"] * 200, format=format, source="en")[0] == 200
