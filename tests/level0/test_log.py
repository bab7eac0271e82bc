"""Channels: off for nothing, shown through logging, kept and collected as data."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dynacap import log
from dynacap.config import config


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with config.patch(logs=()):
        yield


def test_an_unknown_channel_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no log channel 'graf'; there are: graph, guards"):
        log.channel("graf")


def test_a_channel_is_off_until_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    graph = log.channel("graph")
    assert not graph.enabled
    graph.emit("unseen")
    with config.patch(logs="graph"):
        assert graph.enabled
        assert not log.channel("breaks").enabled
        graph.emit("captured 3 operations", count=3)
    assert not graph.enabled
    assert [record.getMessage() for record in caplog.records] == ["captured 3 operations"]
    assert caplog.records[0].name == "dynacap.graph"
    assert caplog.records[0].fields == {"count": 3}


def test_shown_records_are_kept_as_data() -> None:
    with config.patch(logs="graph,breaks"):
        log.channel("graph").emit("one", n=1)
        log.channel("breaks").emit("two", reason="print")
    assert [(r.message, r.fields) for r in log.records("breaks")][-1:] == [
        ("two", {"reason": "print"})
    ]
    assert [r.message for r in log.records()][-2:] == ["one", "two"]


def test_collect_gets_records_that_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with log.collect("graph") as outer, log.collect() as inner:
        log.channel("graph").emit("both")
        log.channel("hook").emit("inner only")
    log.channel("graph").emit("neither")
    assert [r.message for r in outer] == ["both"]
    assert [r.message for r in inner] == ["both", "inner only"]
    assert not caplog.records


def test_fields_keep_no_object_alive() -> None:
    class Thing:
        def __repr__(self) -> str:
            return "<thing>"

    with log.collect("guards") as records:
        log.channel("guards").emit("m", thing=Thing(), nested={1: (Thing(), 2.5, None)})
    assert records[0].fields == {"thing": "<thing>", "nested": {"1": ["<thing>", 2.5, None]}}


def test_a_warning_comes_once_for_its_key(caplog: pytest.LogCaptureFixture) -> None:
    log.forget_warnings()
    for _ in range(2):
        log.warn_once("limit", "the recompile limit was reached", limit=8)
    assert [(r.levelno, r.name) for r in caplog.records] == [(logging.WARNING, "dynacap")]
    log.forget_warnings()
    log.warn_once("limit", "the recompile limit was reached", limit=8)
    assert len(caplog.records) == 2


@pytest.mark.parametrize(("setup", "shown"), [("", 1), ("logging.basicConfig();", 1)])
def test_text_is_shown_once_whether_or_not_the_program_sets_up_logging(
    setup: str, shown: int
) -> None:
    code = (
        f"import logging; {setup} from dynacap import log\n"
        "log.channel('graph').emit('hello graph'); log.channel('hook').emit('hello hook')\n"
        "log.warn('careful')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"DYNACAP_LOGS": "graph"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("hello graph") == shown
    assert done.stderr.count("careful") == shown
    assert "hello hook" not in done.stderr
    assert done.stdout == ""
