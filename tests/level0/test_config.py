"""Options: checked when set, patched for a while, read from the environment."""

import pytest

import dynacap
from dynacap.config import LOG_CHANNELS, Config, config, from_environment, on_change


def test_the_public_name_is_the_instance_and_not_the_module() -> None:
    assert dynacap.config is config
    assert isinstance(config, Config)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        AttributeError, match=r"no option 'recompile_limits'; it has: .*recompile_limit"
    ):
        Config().recompile_limits = 3


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("recompile_limit", 0, "an int of at least 1"),
        ("recompile_limit", True, "an int of at least 1"),
        ("recompile_limit", "8", "an int of at least 1"),
        ("suppress_errors", 1, "True or False"),
        ("hook", "c", "'auto', 'pep523', 'settrace'"),
        ("checker", None, "'auto', 'c', 'python'"),
        ("logs", "graf", "graph, guards"),
        ("logs", 3, "graph, guards"),
        ("logs", [3], "graph, guards"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_accepted(
    name: str, value: object, accepted: str
) -> None:
    mine = Config()
    before = getattr(mine, name)
    with pytest.raises(ValueError, match=name) as caught:
        setattr(mine, name, value)
    assert repr(value) in str(caught.value)
    assert accepted in str(caught.value)
    assert getattr(mine, name) == before


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("graph", ("graph",)),
        ("graph, breaks,,graph", ("graph", "breaks")),
        (["breaks"], ("breaks",)),
        ("all", LOG_CHANNELS),
        ("", ()),
    ],
)
def test_logs_takes_text_or_names(given: str | list[str], kept: tuple[str, ...]) -> None:
    mine = Config()
    mine.logs = given  # type: ignore[assignment]
    assert mine.logs == kept


def test_patch_restores_also_after_an_exception_and_when_nested() -> None:
    mine = Config()
    with mine.patch(recompile_limit=3):
        with (
            pytest.raises(KeyError, match=r"\(4, True\)"),
            mine.patch({"recompile_limit": 4}, specialize_int=True),
        ):
            raise KeyError((mine.recompile_limit, mine.specialize_int))
        assert (mine.recompile_limit, mine.specialize_int) == (3, False)
    assert mine.recompile_limit == 8


def test_patch_decorates_and_may_recurse() -> None:
    mine = Config()

    @mine.patch(recompile_limit=3)
    def depth(left: int) -> int:
        assert mine.recompile_limit == 3
        return depth(left - 1) if left else 0

    depth(2)
    assert mine.recompile_limit == 8


def test_patch_checks_before_it_changes_anything() -> None:
    mine = Config()
    with pytest.raises(ValueError, match="recompile_limit"):
        mine.patch(specialize_int=True, recompile_limit=-1)
    assert mine.specialize_int is False


def test_options_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match="hook cannot be deleted"):
        del Config().hook


def test_listeners_hear_of_a_change_when_it_is_in_place() -> None:
    heard = []
    on_change("specialize_float", lambda: heard.append(config.specialize_float))
    with config.patch(specialize_float=True):
        pass
    assert heard == [True, False]


def test_environment_variables_set_options() -> None:
    made = from_environment(
        {
            "DYNACAP_LOGS": "graph,breaks",
            "DYNACAP_RECOMPILE_LIMIT": "3",
            "DYNACAP_SUPPRESS_ERRORS": "1",
        }
    )
    assert made.logs == ("graph", "breaks")
    assert made.recompile_limit == 3
    assert made.suppress_errors is True


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DYNACAP_HOOK", "pep"),
        ("DYNACAP_RECOMPILE_LIMIT", "many"),
        ("DYNACAP_SUPPRESS_ERRORS", "2"),
    ],
)
def test_a_wrong_environment_variable_is_named(variable: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} is '{text}'; it accepts"):
        from_environment({variable: text})


def test_an_unknown_environment_variable_warns() -> None:
    with pytest.warns(UserWarning, match="DYNACAP_LOG is set"):
        from_environment({"DYNACAP_LOG": "graph", "DYNACAP_EXTENSIONS": "off", "HOME": "/"})


def test_describe_has_a_line_for_each_option() -> None:
    assert "recompile_limit = 8: Entries" in Config().describe()
