"""The one error tree of PPS.

Errors of other libraries are mapped to these where the library is called. An error carries data:
which argument or thing it is about, what is wrong, the value where it may be told, and what to do.
Each interface renders that once, and no code takes a message apart. No error quotes memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a request or a file.

    Attributes:
        path: Where, dotted, such as ``nodes.0.name``; empty where it is about the whole.
        problem: What is wrong, without the path.
        value: The value, where it may be told: an id, a name or a title that the caller sent; empty
            otherwise.
        remedy: What to do, such as ``pps route add FOLDER NAME maps one``; empty where the problem
            says it.
        unknown: The path names something that there is not.
        near: The known name that an unknown one probably means.
    """

    path: str
    problem: str
    value: str = ""
    remedy: str = ""
    unknown: bool = False
    near: str = ""

    @property
    def text(self) -> str:
        """The problem in one line, as every interface but the command line shows it."""
        place = f"{self.path}: " if self.path else ""
        return place + self.problem + (f"; {self.remedy}" if self.remedy else "")


class PPSError(Exception):
    """Base of every error that PPS raises on purpose.

    Attributes:
        code: A stable, machine-readable word, such as ``not_found``.
        retryable: True when the same call may succeed later without any change.
        message: What happened and what to do next, in one line: the error's data rendered. An
            interface with words of its own sets it.
    """

    code: str = "error"
    retryable: bool = False
    _text: str = ""
    _rendered: str | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self._text = message

    @property
    def message(self) -> str:
        return self._render() if self._rendered is None else self._rendered

    @message.setter
    def message(self, text: str) -> None:
        self._rendered = text

    def _render(self) -> str:
        return self._text

    def map_texts(self, change: Callable[[str], str]) -> None:
        """Change every text of the error in place, such as to leave out where files lie."""
        self._text = change(self._text)

    def __str__(self) -> str:
        """Return the message."""
        return self.message


class ConfigError(PPSError):
    """A setting is unknown, missing or out of bounds."""

    code = "config"


class NotSet(ConfigError):
    """What is asked for needs something that no setting names.

    Trying again changes nothing before a new start.
    """


class InvalidRequest(PPSError):
    """An argument breaks a stated bound; nothing was changed.

    Attributes:
        problems: All that is wrong, the first of them as ``field``, ``problem``, ``value`` and
            ``remedy``.
    """

    code = "invalid_request"

    def __init__(
        self,
        field: str,
        problem: str,
        *,
        value: str = "",
        remedy: str = "",
        more: Sequence[Problem] = (),
    ) -> None:
        self.problems = (Problem(field, problem, value, remedy), *more)
        super().__init__()

    @property
    def field(self) -> str:
        return self.problems[0].path

    @property
    def problem(self) -> str:
        return self.problems[0].problem

    def _render(self) -> str:
        return "; ".join(problem.text for problem in self.problems)

    def map_texts(self, change: Callable[[str], str]) -> None:
        """Change the text of each problem and remedy."""
        self.problems = tuple(
            replace(item, problem=change(item.problem), remedy=change(item.remedy))
            for item in self.problems
        )

    def within(self, place: str) -> InvalidRequest:
        """Return the same error about a part of what was sent: ``records[2]`` before each path."""
        inner = [replace(item, path=f"{place}.{item.path}") for item in self.problems]
        return InvalidRequest.of(inner)

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> InvalidRequest:
        """Return the error of several problems, at least one."""
        error = cls.__new__(cls)
        error.problems = tuple(problems)
        return error


class UnknownEntity(PPSError):
    """No entity of that name is registered here, or it cannot be used.

    Attributes:
        name: The name of an entity that there is not; empty where the entity cannot be used for
            another reason.
    """

    code = "unknown_entity"
    name: str = ""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class NotFound(PPSError):
    """Nothing of that id belongs to this entity; a foreign id reads exactly the same.

    Attributes:
        noun: What was looked for: ``id``, ``anchor``, ``relation``, or the argument that names it.
        values: What the caller asked for, where that can be told; ids come before titles.
        remedy: Where to look; empty where there is nothing to say.
    """

    code = "not_found"
    noun: str = "id"
    values: tuple[str, ...] = ()
    remedy: str = ""

    def __init__(self, what: str = "id", *, values: Sequence[str] = (), remedy: str = "") -> None:
        super().__init__()
        self.noun = what
        self.values = tuple(values)
        self.remedy = remedy

    def _render(self) -> str:
        named = " or ".join(map(repr, self.values))
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.noun} not found" + (f": {named}" if named else "") + remedy

    def map_texts(self, change: Callable[[str], str]) -> None:
        """Change the values and the remedy."""
        self.values = tuple(map(change, self.values))
        self.remedy = change(self.remedy)


class IsolationError(PPSError):
    """A statement or a row reached across the boundary of an entity; nothing was returned."""

    code = "isolation"


class StoreError(PPSError):
    """A store refused or failed."""

    code = "store"


class StoreUnavailable(StoreError):
    """A store cannot be reached; safe to retry."""

    code = "store_unavailable"
    retryable = True


class StoreConflict(StoreError):
    """Somebody else holds the store, or changed it first."""

    code = "store_conflict"
    retryable = True


class Changed(StoreConflict):
    """What was to be changed is not as the caller knew it: the same call again is refused again.

    Read it anew.

    Attributes:
        path: The argument that says what the caller knew; empty where none does.
        problem: How it is instead.
    """

    retryable = False
    path: str = ""
    problem: str = ""

    def __init__(self, problem: str, *, path: str = "") -> None:
        super().__init__()
        self.path = path
        self.problem = problem

    def _render(self) -> str:
        return Problem(self.path, self.problem).text

    def map_texts(self, change: Callable[[str], str]) -> None:
        """Change the problem."""
        self.problem = change(self.problem)


class Overloaded(PPSError):
    """More waits to be taken in than a bound allows.

    Nothing was written, and it is safe to try again.

    Attributes:
        retry_after_s: Seconds after which another try makes sense.
    """

    code = "overloaded"
    retryable = True
    retry_after_s: float = 5.0

    def __init__(self, message: str, retry_after_s: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelError(PPSError):
    """A model failed.

    Attributes:
        provider: Which one: ``embedder``, ``extractor``, or empty when the caller knows.
        retry_after_s: Seconds for which the provider asked to be left alone; None when it did not
            say.
    """

    code = "model"
    provider: str = ""
    retry_after_s: float | None = None

    def __init__(
        self, message: str, *, provider: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.retry_after_s = retry_after_s


class BudgetSpent(PPSError):
    """Today's budget for language models is spent; nothing was asked, and it goes on by itself.

    Attributes:
        until: When there is a new budget (aware UTC).
    """

    code = "budget_spent"
    retryable = True

    def __init__(self, until: datetime) -> None:
        super().__init__(f"today's token budget is spent; reading goes on at {until.isoformat()}")
        self.until = until


class ModelUnavailable(ModelError):
    """A model cannot be loaded or reached; safe to retry once it can."""

    code = "model_unavailable"
    retryable = True


class ModelOutputInvalid(ModelError):
    """A model answered with something that is not what was asked for."""

    code = "model_output_invalid"
