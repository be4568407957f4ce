"""Delay rules: how they are written, which cannot stand beside each other, and that all workers merge them alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.errors import ConfigurationError, FormatError
from light_scheduler.model import DelayRule, RuleError
from light_scheduler.model.delay import check_rule, parse_rule, rule_book
from light_scheduler.settings import load_settings
from light_scheduler.wire.delays import decode_rule, encode_rule


def rule(name: str, source: str, target: str, delay: int = 5_000) -> DelayRule:
    return DelayRule(name, source, delay, target)


@pytest.mark.parametrize(
    ("arguments", "field", "reason"),
    [
        (("a/b", "x", "5s", "y"), "name", "must be 1 to 100 letters"),
        (("a", "x y", "5s", "y"), "source", "is not a topic name"),
        (("a", "x", "5s", ".."), "target", "is not a topic name"),
        (("a", "x", "soon", "y"), "delay", "is not a duration"),
        (("a", "x", "0", "y"), "delay", "must be 1ms to 3650d"),
        (("a", "x", "4000d", "y"), "delay", "must be 1ms to 3650d"),
    ],
)
def test_what_is_wrong_with_a_rule_is_named(arguments: tuple[str, str, str, str], field: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason) as refused:
        parse_rule(*arguments)
    assert refused.value.field == field


class TestLoops:
    def test_a_rule_into_its_own_source_is_a_loop(self) -> None:
        with pytest.raises(RuleError, match="a -5s-> a"):
            check_rule(rule("one", "a", "a"), [], ())

    def test_a_loop_is_shown_hop_by_hop(self) -> None:
        others = [rule("one", "a", "b"), rule("two", "b", "c", 60_000), rule("other", "b", "d")]
        with pytest.raises(RuleError, match="c -5s-> a -5s-> b -1m-> c") as refused:
            check_rule(rule("three", "c", "a"), others, ())
        assert refused.value.field == "target"

    def test_chains_forks_and_joins_are_no_loops(self) -> None:
        others = [rule("one", "a", "b"), rule("two", "b", "c"), rule("fork", "a", "c"), rule("twice", "a", "b", 9)]
        check_rule(rule("three", "c", "d"), others, ())
        check_rule(rule("join", "x", "a"), others, ())

    def test_a_rule_that_takes_the_place_of_another_is_judged_without_it(self) -> None:
        check_rule(rule("one", "b", "a"), [rule("one", "a", "b")], ())


@pytest.mark.parametrize(("source", "target", "field"), [("own", "b", "source"), ("a", "own", "target")])
def test_the_schedulers_own_topics_are_refused(source: str, target: str, field: str) -> None:
    with pytest.raises(RuleError, match="own belongs to the scheduler") as refused:
        check_rule(rule("one", source, target), [], {"own"})
    assert refused.value.field == field


def test_kafkas_own_topics_are_refused() -> None:
    with pytest.raises(RuleError, match="belongs to Kafka"):
        check_rule(rule("one", "__consumer_offsets", "b"), [], ())


class TestMerging:
    def test_the_configuration_comes_first_and_a_stored_rule_of_its_name_is_passed_over(self) -> None:
        book = rule_book([rule("one", "a", "b")], [rule("one", "a", "z"), rule("two", "b", "c")])
        assert book.rules == {"one": rule("one", "a", "b"), "two": rule("two", "b", "c")}
        assert book.configured == {"one"}
        assert not book.refused

    def test_of_two_stored_rules_that_make_a_loop_the_earlier_one_stands(self) -> None:
        book = rule_book([], [rule("z", "a", "b"), rule("a", "b", "a")])
        assert list(book.rules) == ["z"]
        assert "loop" in book.refused["a"][1]

    def test_a_stored_rule_on_an_own_topic_is_refused_with_the_reason(self) -> None:
        book = rule_book([], [rule("one", "own", "b")], {"own"})
        assert book.refused["one"][1].startswith("source: own belongs to the scheduler")


class TestSetting:
    def test_rules_are_written_in_a_line(self) -> None:
        settings = load_settings({"delays": "one=a:5s:b, two=b:1m:c"}, environment={})
        assert settings.delays == (rule("one", "a", "b"), rule("two", "b", "c", 60_000))

    def test_rules_are_tables_in_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.toml"
        file.write_text('[delays.one]\nsource = "a"\ndelay = "5s"\ntarget = "b"\n')
        assert load_settings({}, environment={}, file=file).delays == (rule("one", "a", "b"),)

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ("one=a:b", "'one=a:b' must be NAME=SOURCE:DELAY:TARGET"),
            ("one=a:5x:b", "rule one: delay: '5x' is not a duration"),
            ("one=a:5s:b,one=b:5s:c", "rule one is given twice"),
            ("one=a:5s:b,two=b:5s:a", "creates a loop"),
            ("one=light-scheduler-history:5s:b", "belongs to the scheduler"),
            ("one=a:5s:light-scheduler-commands", "belongs to the scheduler"),
        ],
    )
    def test_a_mistake_is_refused_by_the_settings_name(self, value: str, reason: str) -> None:
        with pytest.raises(ConfigurationError, match=reason):
            load_settings({"delays": value}, environment={})

    def test_a_table_with_something_else_in_it_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "settings.toml"
        file.write_text('[delays.one]\nsource = "a"\ndelay = "5s"\ntarget = "b"\nfast = true\n')
        with pytest.raises(ConfigurationError, match="source, delay and target, and nothing else"):
            load_settings({}, environment={}, file=file)


class TestRecords:
    def test_a_rule_survives_its_record(self) -> None:
        key, value = encode_rule(rule("one", "a", "b"))
        assert (key, value) == (b"one", b'{"source":"a","delay":5000,"target":"b"}')
        assert decode_rule(key, value) == ("one", rule("one", "a", "b"))
        assert decode_rule(key, None) == ("one", None)

    @pytest.mark.parametrize("value", [b"", b"{", b"\xff", b'{"source":"a","delay":0,"target":"b"}', b"[]"])
    def test_other_bytes_are_refused(self, value: bytes) -> None:
        with pytest.raises(FormatError):
            decode_rule(b"one", value)
