"""Plural forms of gettext: how many a language has, and which one a number takes."""

_SLAVIC = "n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_FORMS = {
    "nplurals=1; plural=0;": "id ja ka km ko lo ms my th vi yue zh",
    "nplurals=2; plural=(n != 1);": "af az bg bn ca da de el en eo es et eu fi fo fy gl gu he hi hu it kn ml mn mr nb"
    " ne nl nn no pa pt sq sv sw ta te ur",
    "nplurals=2; plural=(n > 1);": "br fa fil fr ln mg oc pt-br tg tr uz wa",
    f"nplurals=3; plural=({_SLAVIC});": "be bs hr ru sr uk",
    f"nplurals=3; plural=({_SLAVIC.replace('n%10==1 && n%100!=11', 'n==1')});": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_BY_LANGUAGE = {language: forms for forms, languages in _FORMS.items() for language in languages.split()}


def plural_forms(language: str) -> str | None:
    """The value of the header field Plural-Forms; None if the language is not known."""
    tag = language.lower().replace("_", "-")
    return _BY_LANGUAGE.get(tag) or _BY_LANGUAGE.get(tag.split("-")[0])
