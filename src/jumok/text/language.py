"""Detect the language of texts, and texts that cannot be in a given one, by letters and function words."""

import re

WORD = re.compile(r"[^\W\d_]+")
_LOWERCASE_WORD = re.compile(r"(?<!\S)[a-zß-ÿ]{2,}(?!\S)")

# fmt: off
_LATIN = "a-zA-Zª-ɏḀ-ỿ"
_LETTERS = {
    "ko": "가-힣ᄀ-ᇿ㄰-㆏", "ja": "ぁ-ヿ㐀-鿿", "zh": "㐀-鿿", "ru": "Ѐ-ԯ", "uk": "Ѐ-ԯ", "el": "Ͱ-Ͽἀ-῿",
    "he": "\u0590-\u05ff", "ar": "\u0600-\u06ff\u0750-\u077f", "th": "\u0e00-\u0e7f", "hi": "\u0900-\u097f",
    **dict.fromkeys(("en", "de", "fr", "es", "it", "nl", "pt", "sv", "da", "fi", "pl", "cs", "tr", "vi"), _LATIN),
}
# Hardly any sentence does without function words, whatever its topic. A word that two of these languages share belongs
# in both lists, where it cancels out.
_FUNCTION_WORDS = {
    "en": "the a an and or of is are was were be with for from by on at to this that it its has have not as you he can"
          " which your his her they their there who will while into in i no o do me come per d l",
    "de": "der die das den dem des ein eine einen einem einer und oder ist sind mit für von vom zu zum zur auf aus an"
          " bei im sich es er sie nicht was wird werden nach über auch durch kann als in",
    "fr": "le la les un une des du de d l et est sont dans sur avec pour par au ce cette qui que qu ne pas il elle en",
    "es": "el la los las un una de del y o es son en con por para al que no se su sus lo como más pero este esta hay",
    "it": "il lo la i gli le un una di del della dei e è sono in con per da dal al alla che non si come più nel su",
    "nl": "de het een en is zijn met voor van op aan in uit bij naar niet ook zich hij ze als dat door te om die er",
    "pt": "o a os as um uma de do da dos das e é são em no na com por para ao que não se seu sua como mais mas está",
}
# fmt: on
_CYRILLIC_OR_LIKE_LATIN = "Ѐ-ԯΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
_MIXED = re.compile(f"[a-zA-Z][{_CYRILLIC_OR_LIKE_LATIN}]|[{_CYRILLIC_OR_LIKE_LATIN}][a-zA-Z]")


def mixed_word(text: str) -> str | None:
    """The first word that mixes Latin letters with Cyrillic ones, or with Greek ones that look like them.

    Other mixtures have a meaning: Korean attaches particles to names of any script, science writes TNFα.
    """
    if text.isascii() or not (found := _MIXED.search(text)):
        return None
    return next(word[0] for word in WORD.finditer(text) if word.end() > found.start())


class Language:
    """Detects texts that cannot be in a language; in doubt, they can."""

    def __init__(self, code: str, *, other: str | None = None) -> None:
        """`other` is the only alternative language; without it, any language is."""
        self.code = _plain(code)
        letters = _LETTERS.get(self.code)
        self._latin = letters == _LATIN
        self._letters = re.compile(f"[{letters}]") if letters else None
        names = [_plain(other)] if other else list(_FUNCTION_WORDS)
        own, *others = (set(_FUNCTION_WORDS.get(name, "").split()) for name in (self.code, *names))
        self._profiles = [(own - other, other - own) for other in others if own and other and other != own]

    def excludes(self, text: str) -> bool:
        words = WORD.findall(text)
        if self._profiles and len(words) >= 5:
            lower = [word.lower() for word in words]
            for profiles in self._profiles:
                own, others = (sum(word in profile for word in lower) for profile in profiles)
                if others >= max(2, 0.25 * len(words)) and others > 3 * own:
                    return True
        if not self._letters or (self._latin and text.isascii()):
            return False
        # Korean or Russian text may be nearly all Latin names and code; English is hardly ever mostly Hangul.
        if len(self._letters.findall(text)) >= (0.3 * sum(map(len, words)) if self._latin else 1):
            return False
        # Names and commands keep their Latin letters (those before "ɐ") in any language: only running text is evidence.
        if all(word < "ɐ" for word in words) and len(_LOWERCASE_WORD.findall(text)) < 2:
            return False
        return sum(len(word.encode()) for word in words) >= 10


_FUNCTION_WORD_SETS = {code: frozenset(words.split()) for code, words in _FUNCTION_WORDS.items()}
_OTHER_SCRIPTS = {code: re.compile(f"[{letters}]") for code, letters in _LETTERS.items() if letters != _LATIN}


def likeliest(text: str) -> str:
    """The language that a text is probably in; empty in doubt."""
    words = WORD.findall(text)
    n = sum(map(len, words))
    # Han is read last: Japanese has it too, and Korean may.
    for code in sorted(_OTHER_SCRIPTS, key=lambda code: code == "zh"):
        share = 0.05 if code == "ja" else 0.3
        if n and len(_OTHER_SCRIPTS[code].findall(text if code != "ja" else re.sub("[㐀-鿿]", "", text))) > share * n:
            return code
    lower = [word.lower() for word in words]
    found = {code: sum(word in named for word in lower) for code, named in _FUNCTION_WORD_SETS.items()}
    first, second = sorted(found.values(), reverse=True)[:2]
    return max(found, key=lambda code: found[code]) if first > second and first >= 0.1 * len(words) else ""


def _plain(code: str) -> str:
    return re.split("[-_]", code.lower())[0]
