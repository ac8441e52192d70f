"""DynamoDB numbers: 38 significant digits, magnitude 1E-130 to 9.99…E+125, and zero, all exact.

A number travels as text in its normal form: plain notation, no exponent, no sign but a leading minus, no
leading or trailing zeros. Equal numbers have equal text. Python sees `int` or `Decimal`, never `float`.

Source: Developer Guide, "Supported data types and naming rules", Number.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Final

from hashrange.errors import RequestViolation, ValidationException
from hashrange.limits import NUMBER_DIGITS_MAX, NUMBER_EXPONENT_MAX, NUMBER_EXPONENT_MIN

NOT_A_NUMBER: Final = "The parameter cannot be converted to a numeric value"
TOO_PRECISE: Final = "Attempting to store more than 38 significant digits in a Number"
TOO_LARGE: Final = "Number overflow. Attempting to store a number with magnitude larger than supported range"
TOO_SMALL: Final = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)

_SYNTAX: Final = re.compile(r"([+-]?)([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE]([+-]?[0-9]++))?", re.ASCII)

# Exponents of Java's decimals have 32 bits; the newer layer of the service reads exponents of 64 bits.
_EXPONENT_MAX: Final = 2**31 - 1
_LONG_EXPONENT_MAX: Final = 2**63 - 1
_EXPONENT_DIGITS_MAX: Final = 19

_ZERO: Final = ord("0")
_NINE: Final = ord("9")
_POINT: Final = ord(".")
_MINUS: Final = ord("-")

# The sum of the largest and the smallest number is exact with this precision; the limits are checked
# afterwards.
_EXACT: Final = Context(prec=300)


def normalise(text: str) -> str:
    """The normal form of the number in `text`.

    Raises `RequestViolation` if `text` is not a number, or is outside DynamoDB's range or precision.
    """
    # Most numbers are already in normal form, and too short to break a limit.
    if normal_size(text):
        return text
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise RequestViolation(f"{NOT_A_NUMBER}: {text}" if text else NOT_A_NUMBER, f"{NOT_A_NUMBER}: {text}")
    sign, mantissa, exponent_text = match.groups()
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    exponent = -len(fraction)
    if exponent_text:
        exponent += _exponent(text, exponent_text, digits, exponent)
    if not NUMBER_EXPONENT_MIN <= exponent <= NUMBER_EXPONENT_MAX and not digits.strip("0"):
        # Since 2025 a zero is out of range as well if its exponent is.
        raise RequestViolation(TOO_LARGE if exponent > 0 else TOO_SMALL)
    return _compose(sign == "-", digits, exponent)


def _exponent(text: str, exponent_text: str, digits: str, scale: int) -> int:
    """The exponent of the number `text`; `scale` is the exponent that its digits alone would have.

    Raises `RequestViolation` if it is too large for the layer that reads it. The older layer has exponents of
    32 bits. It mistakes the largest numbers for the smallest, because the place of their first digit
    overflows.
    """
    magnitude_text = exponent_text.lstrip("+-").lstrip("0")
    unreadable = f"{NOT_A_NUMBER}: {text}"
    if len(magnitude_text) > _EXPONENT_DIGITS_MAX:
        raise RequestViolation(unreadable)
    magnitude = int(magnitude_text or "0")
    exponent = -magnitude if exponent_text[0] == "-" else magnitude
    out_of_range = TOO_LARGE if exponent > 0 else TOO_SMALL
    if magnitude > _LONG_EXPONENT_MAX:
        raise RequestViolation(unreadable)
    if magnitude > _EXPONENT_MAX or exponent + scale < -_EXPONENT_MAX:
        raise RequestViolation(unreadable, out_of_range)
    if exponent + scale + max(len(digits.lstrip("0")), 1) > _EXPONENT_MAX:
        raise RequestViolation(TOO_SMALL, out_of_range)
    return exponent


def _compose(negative: bool, digits: str, exponent: int, *, too_precise: str = TOO_PRECISE) -> str:
    """The normal form of ±digits·10^exponent, checked against the limits; `too_precise` is the error's text
    if it has too many digits."""
    digits = digits.lstrip("0")
    if not digits:
        return "0"
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    digits = stripped
    leading = len(digits) + exponent - 1
    if leading > NUMBER_EXPONENT_MAX:
        raise RequestViolation(TOO_LARGE)
    if leading < NUMBER_EXPONENT_MIN:
        raise RequestViolation(TOO_SMALL)
    if len(digits) > NUMBER_DIGITS_MAX:
        raise RequestViolation(too_precise)
    if exponent >= 0:
        text = digits + "0" * exponent
    elif leading >= 0:
        text = digits[:exponent] + "." + digits[exponent:]
    else:
        text = "0." + "0" * (-leading - 1) + digits
    return "-" + text if negative else text


def parse(text: str) -> int | Decimal:
    """The value of a number in normal form."""
    return Decimal(text) if "." in text else int(text)


def render(number: int | Decimal) -> str:
    """The normal form of `number`, the result of a calculation. Raises `ValidationException` beyond the
    limits.

    A result of more than 38 digits is an overflow, even if its magnitude is in the range: [report]
    Alternator's authors, of the difference of 1e50 and 1; other calculations are [assumed].
    """
    if isinstance(number, int):
        text = str(number)
        return _compose(text[0] == "-", text.lstrip("-"), 0, too_precise=TOO_LARGE)
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValidationException(f"{NOT_A_NUMBER}: {number}")
    return _compose(bool(sign), "".join(map(str, digits)), exponent, too_precise=TOO_LARGE)


def add(left: str, right: str) -> str:
    """The exact sum of two numbers in normal form, in normal form."""
    if "." in left or "." in right:
        return render(_EXACT.add(Decimal(left), Decimal(right)))
    total = int(left) + int(right)
    if -(10**37) < total < 10**37:
        return str(total)
    return render(total)


def subtract(left: str, right: str) -> str:
    """The exact difference of two numbers in normal form, in normal form."""
    if "." in left or "." in right:
        return render(_EXACT.subtract(Decimal(left), Decimal(right)))
    return render(int(left) - int(right))


def normal_size(text: str) -> int:
    """The size of a number that is in normal form and too short to break a limit; 0 for any other text.

    A loop over the characters, because compiled it takes a tenth of the time of a regular expression.
    """
    length = len(text)
    if not 0 < length <= NUMBER_DIGITS_MAX:
        return 0
    negative = 1 if ord(text[0]) == _MINUS else 0
    point = -1
    low = high = -1  # the first and the last digit that is not 0
    for place in range(negative, length):
        code = ord(text[place])
        if _ZERO < code <= _NINE:
            if low < 0:
                low = place
            high = place
        elif code == _POINT and point < 0:
            point = place
        elif code != _ZERO:
            return 0
    if low < 0:
        return 1 if length == 1 and not negative and point < 0 else 0  # "0"
    if point < 0:
        return 0 if low > negative else 1 + negative + (high - negative + 2) // 2
    if point == negative or high < length - 1 or high < point:
        return 0
    if low > point:
        whole = 0 if point == negative + 1 else -1
        low_fraction = low
    else:
        whole = point - negative if low == negative else -1
        low_fraction = point + 1
    if whole < 0:
        return 0  # a zero before other digits
    return 1 + negative + (whole + 1) // 2 + (length - low_fraction + 1) // 2


def size(text: str) -> int:
    """The bytes that DynamoDB counts for a number in normal form.

    One byte, one for each started pair of significant digits before and after the point, one if negative.
    Source: Developer Guide, "DynamoDB item sizes and formats".
    """
    quick = normal_size(text)
    if quick:
        return quick
    if text.isdigit():
        return 1 + (len(text.rstrip("0")) + 1) // 2
    negative = text[0] == "-"
    whole, _, fraction = text.partition(".")
    if negative:
        whole = whole[1:]
    if fraction:
        whole = whole.lstrip("0")
        if not whole:
            fraction = fraction.lstrip("0")
    else:
        whole = whole.rstrip("0")
    return 1 + negative + (len(whole) + 1) // 2 + (len(fraction) + 1) // 2
