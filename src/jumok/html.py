"""HTML fragments for notebooks: bars, highlighted texts, matrices. No scripts, inline styles, all text escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from jumok.text.span import Span

# Okabe and Ito's palette for colour-blind readers.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
_FONT = "font-family:sans-serif;font-size:14px;line-height:1.6"


def block(*parts: str) -> str:
    return f'<div style="{_FONT}">{"".join(parts)}</div>'


def line(text: str, *, small: bool = False) -> str:
    style = "font-size:12px;opacity:.7" if small else ""
    return f'<div style="{style}">{escape(text)}</div>'


def bars(shares: Mapping[str, float], most: int = 10) -> str:
    """Labels with their probabilities, the likeliest first."""
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    rows = "".join(
        f'<tr><td style="text-align:right;padding:0 8px">{escape(label)}</td>'
        f'<td style="width:200px"><div style="background:{COLOURS[0]};height:12px;width:{200 * max(share, 0):.0f}px">'
        f'</div></td><td style="padding:0 8px">{share:.3f}</td></tr>'
        for label, share in ranked[:most]
    )
    more = line(f"and {len(ranked) - most} more", small=True) if len(ranked) > most else ""
    return f'<table style="border-collapse:collapse">{rows}</table>{more}'


def marked(text: str, spans: Iterable[Span]) -> str:
    """A text with its spans highlighted and labelled; a span that overlaps an earlier one is skipped."""
    found = sorted(spans, key=lambda span: (span.start, -span.end))
    kinds = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(sorted({span.label for span in found}))}
    html, at = "", 0
    for span in found:
        if span.start < at:
            continue
        label = f'<sub style="opacity:.7;padding-left:3px">{escape(span.label)}</sub>' if span.label else ""
        style = f"background:{kinds[span.label]}33;border-bottom:2px solid {kinds[span.label]};padding:1px 2px"
        title = f"{span.label} {span.score:.3f}".strip()
        html += escape(text[at : span.start])
        html += f'<span style="{style}" title="{escape(title)}">{escape(text[span.start : span.end])}{label}</span>'
        at = span.end
    return f"<div>{html}{escape(text[at:])}</div>"


def shaded(words: Iterable[tuple[str, float]]) -> str:
    """Words, shaded by their weight."""
    pairs = list(words)
    most = max((weight for _, weight in pairs), default=0.0) or 1.0
    spans = (
        f'<span style="background:rgba(0,114,178,{0.8 * max(weight, 0) / most:.2f});padding:1px 2px"'
        f' title="{weight:.3f}">{escape(word)}</span>'
        for word, weight in pairs
    )
    return f"<div>{' '.join(spans)}</div>"


def matrix(rows: Sequence[str], columns: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """An attention matrix: a row for each query, a column for each key."""
    cell = "border:1px solid #8883;padding:1px 4px;font-size:12px;text-align:center"
    head = "".join(f'<th style="{cell};writing-mode:vertical-rl">{escape(column)}</th>' for column in columns)
    most = max((weight for row in weights for weight in row), default=0.0) or 1.0
    body = "".join(
        f'<tr><th style="{cell};text-align:right">{escape(name)}</th>'
        + "".join(
            f'<td style="{cell};background:rgba(0,114,178,{0.8 * weight / most:.2f})" title="{weight:.3f}">&nbsp;</td>'
            for weight in row
        )
        + "</tr>"
        for name, row in zip(rows, weights, strict=True)
    )
    return f'<table style="border-collapse:collapse"><tr><th></th>{head}</tr>{body}</table>'
