"""Is a text Vietnamese or English? A test by letters and small words, for the two languages of the cells.

- **Vietnamese**: at least 3 in 10 words hold a letter with a Vietnamese mark (ă, ơ, ế, ...), and one word is among the
  commonest small words of the language. Running Vietnamese has marks in 7 of 10 words.
- **English**: at most 15 in 100 words hold such a letter (names may), and one word in 12 is among the commonest small
  words of English. Running English has one in three.

Anything else is neither. The test knows no other language: Malay would be neither, and so is French or German.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W\d_]+")
#: Letters that Vietnamese writes and English does not (small, composed).
_MARKED = frozenset(
    chr(code) for code in (*range(0xE0, 0x1B1), *range(0x1EA0, 0x1EFA))
    if chr(code) in "àáâãèéêìíòóôõùúýăđĩũơư" or code >= 0x1EA0
)  # fmt: skip


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SMALL = {
    "vi": _set_of(
        "và của là có không được cho tôi các này trong với đã một những khi người để thì bị theo về nếu vào ra từ phải "
        "hay hoặc nào em anh chị bạn đó tại hồ sơ như sẽ đang còn làm"
    ),
    "en": _set_of(
        "the of and to a an is in that for it i my you on with was not have be this your what can are will me do we by "
        "or at as from has if but when how why must may no"
    ),
}
#: Shortest text, in words, that is told the language of by itself.
SHORT = 8


def language_of(text: str) -> str | None:
    """``vi``, ``en``, or ``None`` where the text is neither (see the module for the test)."""
    words = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    if not words:
        return None
    marked = sum(not _MARKED.isdisjoint(word) for word in words) / len(words)
    small = {name: sum(word in known for word in words) for name, known in _SMALL.items()}
    if marked >= 0.3 and small["vi"]:
        return "vi"
    if marked <= 0.15 and small["en"] * 12 >= len(words):
        return "en"
    return None


def is_in(language: str, texts: list[str]) -> bool:
    """Whether texts that belong together are in a language.

    All of them as one text are, and none of :data:`SHORT` words or more is in the other one.
    """
    if language_of("\n".join(texts)) != language:
        return False
    longer = (text for text in texts if len(_WORD.findall(text)) >= SHORT)
    return all(language_of(text) in (language, None) for text in longer)
