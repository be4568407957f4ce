"""The dead letters of delay rules: for whom they are, and what is in them."""

from __future__ import annotations

from support.delay_lanes import RULE, Broker, run

from light_scheduler.kafka.targets import TargetTopic


async def test_a_dead_letter_of_a_rule_is_of_no_known_tenant_so_that_only_who_sees_all_tenants_sees_it() -> None:
    broker = Broker(lambda _size: None, key=None)
    broker.topics[RULE.target] = TargetTopic(1, 1_000_000, None, 0.0, is_compacted=True)
    await run(broker, lambda: broker.letters > 0)

    assert broker.letter is not None
    assert ("dead-letter-tenant-unknown", b"true") in broker.letter.headers
