"""The expression language of fault values: exact arithmetic, dates and texts, nothing else.

Values are :class:`decimal.Decimal`, :class:`datetime.date` or ``str``. The language is a subset of
Python's expression grammar, read with :mod:`ast` and walked node by node, so nothing is ever executed.
It is our own because results must be exact decimals and dates (a general evaluator works in floats)
and every error has to name the expression. Described for authors in docs/faults.md.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, Inexact
from functools import lru_cache

from regatta_tools.text import shown

Value = Decimal | date | str
MAX_LENGTH = 500
#: Significant digits of a number, and of a quotient.
DIGITS = 28
MAX_DAYS = 100_000
#: Expressions that are kept as read: each is read for its names, for its faults and for every probe.
_KEPT = 4096


class ExpressionError(ValueError):
    """An expression or its inputs cannot be understood; the message says why."""


def _number(value: Value, where: str) -> Decimal:
    if not isinstance(value, Decimal):
        raise ExpressionError(f"{where} needs a number, not {shown(render(value))}")
    return value


def _day(value: Value, where: str) -> date:
    if not isinstance(value, date):
        raise ExpressionError(f"{where} needs a date, not {shown(render(value))}")
    return value


def _whole(value: Value, where: str) -> int:
    number = _number(value, where)
    if number != number.to_integral_value() or number.copy_abs() > MAX_DAYS:
        raise ExpressionError(f"{where} needs a whole number of at most {MAX_DAYS}")
    return int(number)


def _add_days(start: Value, days: Value) -> date:
    return _day(start, "add_days") + timedelta(days=_whole(days, "add_days"))


def _add_business_days(start: Value, days: Value) -> date:
    """The date that lies ``days`` business days after ``start`` (Saturdays and Sundays left out, no holidays)."""
    current, left = _day(start, "add_business_days"), _whole(days, "add_business_days")
    if left < 0:
        raise ExpressionError("add_business_days needs a number of days that is not negative")
    # Five business days end on a business day, and as many later the date is a week later.
    weeks = max(0, left - 1) // 5
    current, left = current + timedelta(weeks=weeks), left - 5 * weeks
    while left:
        current += timedelta(days=1)
        if current.weekday() < 5:
            left -= 1
    return current


def _round_half_up(value: Value, places: Value) -> Decimal:
    digits = _whole(places, "round_half_up")
    if not 0 <= digits <= 12:
        raise ExpressionError("round_half_up takes 0 to 12 places")
    return _number(value, "round_half_up").quantize(_PLACES[digits], ROUND_HALF_UP, _ROUNDED)


def _extreme(pick: Callable[..., Decimal], name: str) -> Callable[..., Decimal]:
    def function(*values: Value) -> Decimal:
        if not values:
            raise ExpressionError(f"{name} needs a value")
        return pick(_number(v, name) for v in values)

    return function


_FUNCTIONS: dict[str, tuple[Callable[..., Value], range]] = {
    "add_days": (_add_days, range(2, 3)),
    "add_business_days": (_add_business_days, range(2, 3)),
    "round_half_up": (_round_half_up, range(2, 3)),
    "min": (_extreme(min, "min"), range(1, 20)),
    "max": (_extreme(max, "max"), range(1, 20)),
}
_PLACES = [Decimal(1).scaleb(-digits) for digits in range(13)]
# Results are exact, or an error; a quotient and a rounding are as good as 28 digits have it.
_ROUNDED = Context(prec=DIGITS)
_EXACT = Context(prec=DIGITS)
_EXACT.traps[Inexact] = True
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: _EXACT.add,
    ast.Sub: _EXACT.subtract,
    ast.Mult: _EXACT.multiply,
    ast.Div: _ROUNDED.divide,
}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_LITERAL = re.compile(rf"[0-9]{{1,{DIGITS}}}(\.[0-9]{{1,{DIGITS}}})?")
_TEXT = re.compile('"[^"]*"')
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@lru_cache(maxsize=_KEPT)
def names_in(expression: str) -> frozenset[str]:
    """The input names that an expression uses. Raises :class:`ExpressionError` where it is not of the language."""
    tree = _parse(expression)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def evaluate(expression: str, inputs: Mapping[str, Value]) -> Value:
    """The value of ``expression`` over ``inputs``.

    Sums, differences and products are exact, quotients have 28 significant digits. Raises
    :class:`ExpressionError` for anything outside the language, unknown names, wrong types, division by
    zero, results of more digits and dates out of range.
    """
    tree = _parse(expression)
    try:
        return _walk(tree, inputs)
    except ArithmeticError as error:
        reason = _REASONS.get(type(error), "the result is out of range or undefined")
        raise ExpressionError(f"{shown(expression)} cannot be computed: {reason}") from error
    except RecursionError as error:
        raise ExpressionError("the expression is nested too deeply") from error


_REASONS: dict[type[ArithmeticError], str] = {
    Inexact: f"the exact result has more than {DIGITS} digits",
    DivisionByZero: "division by zero",
}


@lru_cache(maxsize=_KEPT)
def _parse(expression: str) -> ast.expr:
    """The tree of an expression, with exact numbers in it. Nothing but the language gets through."""
    text = expression.strip()
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has more than {MAX_LENGTH} characters")
    if odd := re.search(r"[\\\x00-\x1f\x7f]", text) or re.search("#", _TEXT.sub("", text)):
        # Escapes, line breaks and comments, which Python's grammar knows and the language does not.
        raise ExpressionError(f"{odd.group()!r} is not part of the expression language")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{shown(expression)} cannot be read") from error
    raw = text.encode("utf-8")
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        # Places count bytes, and there is one line.
        source = raw[node.col_offset : node.end_col_offset].decode("utf-8")
        match node:
            case ast.Constant(value=str()):
                fits = _TEXT.fullmatch(source) is not None
            case ast.Constant():
                fits = _LITERAL.fullmatch(source) is not None
                if fits:
                    # The text, not the float that Python made of it, so that 0.1 is exactly one tenth.
                    node.value = Decimal(source)  # type: ignore[assignment]
            case ast.Name(id=name):
                fits = name == source and _NAME.fullmatch(source) is not None
            case ast.UnaryOp(op=op):
                fits = isinstance(op, ast.USub)
            case ast.BinOp(op=op):
                fits = type(op) in _OPERATORS
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                fits = name in _FUNCTIONS
            case _:
                fits = False
        if not fits:
            raise ExpressionError(f"{shown(source)} is not part of the expression language")
    return tree


def _walk(node: ast.expr, inputs: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=Decimal() | str() as value):
            return value
        case ast.Name(id=name):
            if name not in inputs:
                raise ExpressionError(f"there is no input {name!r}")
            return inputs[name]
        case ast.UnaryOp(operand=operand):
            return _number(_walk(operand, inputs), "minus").copy_negate()
        case ast.BinOp(left=left, op=op, right=right):
            sign = _SIGNS[type(op)]
            numbers = _number(_walk(left, inputs), sign), _number(_walk(right, inputs), sign)
            return _OPERATORS[type(op)](*numbers)
        case ast.Call(func=ast.Name(id=name), args=args):
            function, arity = _FUNCTIONS[name]
            if len(args) not in arity:
                raise ExpressionError(f"{name} takes another number of values")
            try:
                return function(*(_walk(a, inputs) for a in args))
            except OverflowError as error:
                raise ExpressionError(f"{name} leads out of the calendar") from error
    raise ExpressionError("the expression is not part of the language")


def parse_inputs(text: str) -> dict[str, Value]:
    """Read ``name=value; name=value``; values are decimal numbers, ISO dates or words.

    Raises :class:`ExpressionError` for anything else, and for a name that occurs twice.
    """
    inputs: dict[str, Value] = {}
    for part in text.split(";"):
        name, sign, value = (p.strip() for p in part.partition("="))
        if not sign or not _NAME.fullmatch(name) or not value:
            raise ExpressionError(f"input {shown(part.strip())} is not of the form name=value")
        if keyword.iskeyword(name):
            # The expressions are read by Python's grammar, in which such a word is no name.
            raise ExpressionError(f"input {name!r} has a name that the expression language reserves")
        if name in inputs:
            raise ExpressionError(f"input {name!r} is given twice")
        inputs[name] = parse_value(value)
    return inputs


def parse_value(text: str) -> Value:
    """A decimal number or an ISO date where ``text`` is one, and otherwise the text."""
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else text
    except ValueError:
        return text


def render(value: Value) -> str:
    """The value as it stands in a table: plain decimals, ISO dates, bare texts."""
    if isinstance(value, Decimal):
        return format(value or abs(value), "f")  # a negative zero is zero
    return value.isoformat() if isinstance(value, date) else value


def same(left: Value, right: Value) -> bool:
    """Equality of values; 6.390 is the number 6.39."""
    return type(left) is type(right) and left == right
