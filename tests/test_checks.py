"""Checks of parameters."""

import numpy as np
import pytest

from quickmeans.checks import check_flag, check_number, check_whole


def test_whole_numbers():
    for value in (1, np.int8(1), np.uint64(1)):
        whole = check_whole("n", value, 1)
        assert (type(whole), whole) == (int, 1)
    assert check_whole("n", 2**63 - 1, 0) == 2**63 - 1
    for value in (True, np.True_, 1.0, "1", None, [1], np.array([1]), 0):
        with pytest.raises(ValueError, match="n must be a whole number not below 1 or 'auto', got "):
            check_whole("n", value, 1, " or 'auto'")
    for value in (0, 5):
        with pytest.raises(ValueError, match=f"n must be a whole number from 1 to 4, got {value}"):
            check_whole("n", value, 1, most=4)
    with pytest.raises(ValueError, match="n must be a whole number from 1 to 9223372036854775807, got 1180"):
        check_whole("n", 2**70, 1)


def test_real_numbers():
    for value in (1, 1.0, np.float16(1), np.int64(1)):
        number = check_number("x", value, 1)
        assert (type(number), number) == (float, 1)
    for value in (True, "1", None, np.nan, np.inf, -np.inf, 10**400, 0.5, 1j, np.ones(2)):
        with pytest.raises(ValueError, match="x must be a finite number not below 1, or 'auto', got "):
            check_number("x", value, 1, ", or 'auto'")
    with pytest.raises(ValueError, match="x must be a finite number above 0, got 0"):
        check_number("x", 0, 0, above=True)


def test_flags():
    assert check_flag("f", np.True_) is True
    assert check_flag("f", False) is False
    for value in (0, 1, "x", None):
        with pytest.raises(ValueError, match=f"f must be True or False, got {value!r}"):
            check_flag("f", value)
