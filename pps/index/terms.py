"""The fields of a text index, its documents and its queries; queries are never parsed as syntax.

Text is split by script: into words if the script separates words by spaces, otherwise into
characters and pairs of characters.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from tantivy import (
    Document,
    Filter,
    Index,
    Occur,
    Query,
    Schema,
    SchemaBuilder,
    Searcher,
    TextAnalyzer,
    TextAnalyzerBuilder,
    Tokenizer,
)

from pps.core.errors import ConfigError
from pps.core.ids import is_uuid

_LONGEST_WORD_BYTES = 80
_READ_CHARACTERS = 100_000
_MAX_TERMS = 48
_LONG_WORD = 9
_TITLE_BOOST = 2.0
_HAN_BOOST = 0.3
_K1_IDF = 0.5
HALVES = ("high", "low")
"""Columns with an owner's halves: reading them takes 5 % of the time of reading the document."""
_64_BITS = 2**64 - 1

Weighted = tuple[str, str, float]
"""A field, a term in it, and the term's boost."""

_HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003347f"
)
_KANA = (
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\U0001b000-\U0001b16f"
)
_BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
"""Korean has spaces, but particles are joined to their words; pairs find a word without them."""
_SOUTH_EAST = (
    "\u0e01-\u0e3a\u0e40-\u0e5b"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai Le, New Tai Lue, Tai Tham
    "\u1b00-\u1b7c\ua980-\ua9df\uaa80-\uaadf"  # Balinese, Javanese, Tai Viet
)
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

_RUN = re.compile(f"[{_HAN}{_KANA}{_BOPOMOFO}{_HANGUL}{_SOUTH_EAST}]+|[{_EMOJI}]")
_ONE_HAN = re.compile(f"[{_HAN}]")

_SPACE = ord(" ")
_REMEMBERED = 10_000
"""Maximum number of characters whose kind is cached: more than most texts have."""


@dataclass(frozen=True, slots=True)
class TextDoc:
    """The searchable text of one owner in one collection; without words it is never found.

    Attributes:
        title: A name, which counts twice as much as the body.
        at: A time in microseconds since 1970 UTC, stored with the document.
    """

    collection: str
    owner: str
    body: str
    title: str = ""
    at: int | None = None


def schema() -> Schema:
    """Return the fields: words of body and title, pairs and characters of scripts without spaces.

    Their texts are stored, so that ``purge`` can rewrite the remaining documents by itself.
    """
    builder = SchemaBuilder()
    builder.add_text_field("owner", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("tag", fast=True)
    for half in HALVES:
        builder.add_integer_field(half, fast=True)
    builder.add_integer_field("at", stored=True)
    for field, tokenizer in (
        ("body", "body"),
        ("title", "title"),
        ("pairs", "whitespace"),
        ("characters", "whitespace"),
    ):
        builder.add_text_field(field, stored=True, tokenizer_name=tokenizer, index_option="freq")
    return builder.build()


def halves(owner: str) -> tuple[int, int] | None:
    """Return an owner that is a UUID as two signed 64-bit numbers; None for other owners."""
    if not is_uuid(owner):
        return None
    both = bytes.fromhex(owner.replace("-", ""))
    return int.from_bytes(both[:8], signed=True), int.from_bytes(both[8:], signed=True)


def owner_of(high: int, low: int) -> str:
    """Return the owner with these halves."""
    text = f"{high & _64_BITS:016x}{low & _64_BITS:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def tag(owner: str) -> int:
    """Return a short hash of an owner; as a column, it rules out most other owners cheaply."""
    return zlib.crc32(owner.encode())


class Terms:
    """Builds documents and queries in one language."""

    def __init__(self, language: str) -> None:
        self._schema = schema()
        self._body = _analyzer(language, stops=True)
        self._title = _analyzer(language, stops=False)

    @property
    def schema(self) -> Schema:
        """The fields of the index."""
        return self._schema

    def register(self, index: Index) -> None:
        """Register the tokenizers with an opened index; they are not stored on disk."""
        index.register_tokenizer("body", self._body)
        index.register_tokenizer("title", self._title)

    def document(self, doc: TextDoc) -> Document:
        """Return tantivy's document for a text."""
        body = split(doc.body)
        title = split(doc.title)
        document = Document()
        document.add_text("owner", doc.owner)
        for name, number in _columns(doc.owner):
            document.add_integer(name, number)
        if doc.at is not None:
            document.add_integer("at", doc.at)
        document.add_text("body", body.words)
        if doc.title:
            document.add_text("title", title.words)
        if body.runs or title.runs:
            document.add_text("pairs", " ".join((*title.pairs(), *body.pairs())))
            document.add_text("characters", " ".join((*title.characters(), *body.characters())))
        return document

    def again(self, stored: Document) -> Document:
        """Convert a stored document to the form in which it is written."""
        fields = stored.to_dict()
        fields.update((name, [number]) for name, number in _columns(fields["owner"][0]))
        for name in fields.keys() & {"body", "title"}:
            fields[name] = [split(text).words for text in fields[name]]
        # Typed as a bare dict.
        return Document.from_dict(fields, self._schema)  # pyright: ignore[reportUnknownMemberType]

    def query(self, text: str, searcher: Searcher) -> Query | None:
        """Return a query for any of a text's words; None if it has none.

        Of more than 48 distinct terms only the most significant are used: they occur in the index,
        are frequent in the text, and are rare in the index. Characters after the first 100,000 are
        ignored.
        """
        terms = self._terms(text[:_READ_CHARACTERS])
        if len(terms) > _MAX_TERMS:
            terms = _condensed(terms, searcher)
        if not terms:
            return None
        return Query.boolean_query(
            [(Occur.Should, self._term(field, term, boost)) for field, term, boost in terms]
        )

    def nearly(self, word: str) -> Query | None:
        """Return a query for similar words, or None if the word is not a single indexed term.

        Similar words differ by one slip: a letter inserted, deleted, replaced, or swapped with the
        next. Words of nine letters or more may differ by two. Words of scripts without spaces give
        None.
        """
        terms = [term for field, term, _ in self._terms(word) if field == "body"]
        if len(terms) != 1:
            return None
        slips = 2 if len(terms[0]) >= _LONG_WORD else 1
        return Query.fuzzy_term_query(self._schema, "body", terms[0], distance=slips)

    def _terms(self, text: str) -> Counter[Weighted]:
        cut = split(text)
        words = self._body.analyze(cut.words)
        terms: Counter[Weighted] = Counter(("body", word, 1.0) for word in words)
        # Words that are in every text can still be a name: "Will", "May", "The Who".
        terms.update(
            ("title", word, _TITLE_BOOST) for word in words or self._title.analyze(cut.words)
        )
        terms.update(("pairs", pair, 1.0) for pair in cut.pairs())
        terms.update(("characters", character, 1.0) for character in cut.lone())
        terms.update(("characters", character, _HAN_BOOST) for character in cut.han())
        return terms

    def _term(self, field: str, term: str, boost: float) -> Query:
        query = Query.term_query(self._schema, field, term, "freq")
        return query if boost == 1.0 else Query.boost_query(query, boost)


def _columns(owner: str) -> list[tuple[str, int]]:
    return [("tag", tag(owner)), *zip(HALVES, halves(owner) or (), strict=False)]


def only(query: Query, owners: Iterable[str], fields: Schema) -> Query:
    """Restrict a query to owners without changing its scores."""
    limit = Query.boost_query(Query.term_set_query(fields, "owner", list(owners)), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, limit)])


def _condensed(terms: Counter[Weighted], searcher: Searcher) -> Iterable[Weighted]:
    total = searcher.num_docs
    worth: list[tuple[float, Weighted]] = []
    for weighted, times in terms.items():
        field, term, boost = weighted
        documents = searcher.doc_freq(field, term)
        if documents:
            rarity = math.log1p(max(0.0, total - documents + _K1_IDF) / (documents + _K1_IDF))
            worth.append((-boost * math.sqrt(times) * rarity, weighted))
    return [weighted for _, weighted in sorted(worth)[:_MAX_TERMS]]


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the English stem of a word, without accents: "live" for "lives" and "living"."""
    stems = _english().analyze(word)
    return stems[0] if stems else word


@lru_cache(maxsize=1)
def _english() -> TextAnalyzer:
    return _analyzer("english", stops=False)


def _analyzer(language: str, *, stops: bool) -> TextAnalyzer:
    """Return a tokenizer for words between spaces: lower case, without accents, stemmed.

    ``language`` may be ``none`` for no stemming. For English, accents are removed before stemming,
    so that "résumés" and "resumes" get the same stem; for other languages afterwards, because their
    stemmers need accents.
    """
    builder = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(
        Filter.remove_long(_LONGEST_WORD_BYTES)
    )
    builder = builder.filter(Filter.lowercase())
    if language in ("none", "english"):
        builder = builder.filter(Filter.ascii_fold())
    if language != "none":
        try:
            if stops:
                builder = builder.filter(Filter.stopword(language))
            builder = builder.filter(Filter.stemmer(language))
        except ValueError as error:
            raise ConfigError(
                f"text.language: {language!r} has no stemmer here; use 'english' or 'none'"
            ) from error
    return builder.filter(Filter.ascii_fold()).build()


@dataclass(frozen=True, slots=True)
class Split:
    """A text split by script.

    Attributes:
        words: The words of scripts with spaces; all characters between them are spaces.
        runs: Unbroken runs of characters of scripts without spaces, and single emoji.
    """

    words: str
    runs: tuple[str, ...]

    def pairs(self) -> Iterator[str]:
        """Yield each pair of adjacent characters of a run."""
        for run in self.runs:
            yield from map("".join, pairwise(run))

    def characters(self) -> Iterator[str]:
        """Yield all characters of all runs, so that single characters can be searched."""
        for run in self.runs:
            yield from run

    def lone(self) -> Iterator[str]:
        """Yield the runs of one character."""
        yield from (run for run in self.runs if len(run) == 1)

    def han(self) -> Iterator[str]:
        """Yield the Han characters of longer runs: unlike letters, each has a meaning."""
        for run in self.runs:
            if len(run) > 1:
                yield from _ONE_HAN.findall(run)


def split(text: str) -> Split:
    """Split a text by script after NFKC, which normalises full-width and half-width forms.

    Lone surrogates, which cannot be encoded, become question marks.
    """
    if text.isascii():
        return Split(text.translate(_SPACED), ())
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode())
    runs: list[str] = _RUN.findall(text)
    rest = _RUN.sub(" ", text) if runs else text
    return Split(rest.translate(_SPACED), tuple(runs))


class _Spaced(dict[int, int]):
    """A table for ``str.translate``: letters, marks and numbers stay, others become spaces.

    Characters that are unassigned in this Python's Unicode may be letters of a new script: they
    stay too.
    """

    def __missing__(self, point: int) -> int:
        category = unicodedata.category(chr(point))
        replacement = point if category[0] in "LMN" or category == "Cn" else _SPACE
        if len(self) < _REMEMBERED:
            self[point] = replacement
        return replacement


_SPACED = _Spaced()
