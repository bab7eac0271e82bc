"""Exceptions and `finally`, run in pieces."""

# What these programs do wrong, or in a way that no type describes, is their purpose.
# mypy: ignore-errors
# ruff: noqa: B012, B016, B030, B904, F841

import sys
import traceback
from collections.abc import Callable


def test_in_pieces(program: Callable[[], object], check: Callable[..., None]) -> None:
    check(program)


def fail(text="deep"):
    raise ValueError(text)


def program_raises():
    x = 1
    fail()
    return x


def program_caught_in_loop():
    seen = []
    for i in range(4):
        try:
            if i % 2:
                raise KeyError(i)
            seen.append(i)
        except (KeyError, OSError) as error:
            seen.append(error.args)
        else:
            seen.append("else")
        finally:
            seen.append("finally")
    return seen


def program_raise_again():
    try:
        fail()
    except ValueError:
        print("again")
        raise


def program_raise_other():
    try:
        try:
            fail("first")
        except ValueError:
            raise KeyError("second")
    finally:
        print(sys.exc_info()[1])


def program_raise_from():
    try:
        fail("first")
    except ValueError as error:
        raise KeyError("second") from error


def program_raise_from_none():
    try:
        fail("first")
    except ValueError:
        raise KeyError("second") from None


def program_raise_bound_again():
    try:
        fail()
    except ValueError as error:
        kept = error
    try:
        raise kept
    except ValueError as error:
        print(traceback.format_exc())
        raise error


def program_three_deep():
    try:
        try:
            try:
                fail("one")
            except ValueError as one:
                print(one, sys.exc_info()[1])
                raise TypeError("two")
        except TypeError as two:
            print(two, two.__context__, sys.exc_info()[1])
            raise OSError("three")
    except OSError as three:
        print(three, three.__context__, sys.exc_info()[1])
    print(sys.exc_info()[:2])
    return "end"


def program_handler_in_handler():
    try:
        fail("outer")
    except ValueError:
        try:
            raise KeyError("inner")
        except KeyError as inner_error:
            print(repr(inner_error.__context__), sys.exc_info()[1])
        print(sys.exc_info()[1])
        try:
            fail("not a key")
        except KeyError:
            print("never")
        finally:
            print(sys.exc_info()[1])


def program_loop_in_handler():
    got = []
    try:
        fail()
    except ValueError as error:
        for i in range(3):
            if i == 1:
                continue
            got.append((i, str(error), sys.exc_info()[1] is error))
    return got, sys.exc_info()


def program_break_out_of_handler():
    for i in range(5):
        try:
            fail(i)
        except ValueError:
            if i == 2:
                break
            continue
        finally:
            print("finally", i, sys.exc_info()[1])
    return i, sys.exc_info()


def program_return_in_try():
    for i in range(3):
        try:
            return i, "try"
        finally:
            print("finally", i)


def program_return_in_handler():
    try:
        fail()
    except ValueError as error:
        return str(error), sys.exc_info()[1] is error
    finally:
        print("finally", sys.exc_info())


def program_return_in_finally():
    try:
        fail()
    finally:
        return "swallowed"


def program_return_overridden():
    try:
        return "first"
    finally:
        return "second"


def program_continue_in_finally():
    seen = []
    for i in range(3):
        try:
            seen.append(1 // i)
        finally:
            seen.append(i)
            if i < 2:
                continue
            break
    return seen


def program_finally_raises():
    try:
        fail("first")
    finally:
        fail("second")


def program_nested_finally():
    try:
        try:
            fail()
        finally:
            print("one", sys.exc_info()[1])
    except ValueError:
        print("two")
        try:
            return "value"
        finally:
            print("three", sys.exc_info()[1])
    finally:
        print("four")


def program_except_name_is_unbound():
    error = 1
    try:
        fail()
    except ValueError as error:
        pass
    return error


def program_bad_handler_type():
    try:
        fail()
    except "not a type":
        pass


def program_wrong_match_falls_through():
    try:
        fail()
    except KeyError:
        print("never")
    except (TypeError, OSError):
        print("never")


def program_exception_groups():
    seen = []
    try:
        raise ExceptionGroup(
            "all", [ValueError(1), KeyError(2), ExceptionGroup("in", [OSError(3)])]
        )
    except* ValueError as group:
        seen.append(group.exceptions)
        print(repr(sys.exc_info()[1]))
    except* (KeyError, OSError) as group:
        seen.append(repr(group))
    return seen


def program_exception_group_left_over():
    try:
        raise ExceptionGroup("all", [ValueError(1), KeyError(2)])
    except* ValueError:
        print("value")


def program_exception_group_handler_raises():
    try:
        raise ExceptionGroup("all", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        raise TypeError("from handler") from group
    except* KeyError:
        print("key")
        raise


def program_naked_error_in_star_handler():
    try:
        fail()
    except* ValueError as group:
        print(repr(group))
    return "end"


def program_with_not_a_manager():
    with 3 as x:
        print(x)


def program_raise_nothing():
    raise


def program_raise_no_exception():
    try:
        raise 3
    except TypeError as error:
        print(error)
    raise KeyError from 5


def program_called_in_a_handler():
    try:
        fail("outer")
    except ValueError:
        return program_three_deep(), called_in_handler()


def called_in_handler():
    try:
        raise
    except ValueError as error:
        return repr(error)


def program_line_numbers():
    lines = [sys._getframe().f_lineno]
    try:
        lines.append(sys._getframe().f_lineno)
        fail()
    except ValueError as error:
        lines.append(error.__traceback__.tb_lineno)
        lines.append(sys._getframe().f_lineno)
    first = sys._getframe().f_code.co_firstlineno
    return [line - first for line in lines], sys._getframe().f_code.co_qualname


def program_stop_iteration():
    items = iter([1])
    try:
        return next(items), next(items)
    except StopIteration as stop:
        return stop.value
    finally:
        items = None
