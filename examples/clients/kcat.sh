#!/bin/sh
# Schedule, replace and cancel with kcat. librdkafka's default partitioner is not Kafka's, so it is named.
set -eu
KAFKA="${KAFKA:-127.0.0.1:9092}"
send() { kcat -P -b "$KAFKA" -t light-scheduler-commands -X partitioner=murmur2_random "$@"; }

printf 'pay!' | send -k order-kcat -H schedule-after=15m -H schedule-target-topic=reminders
printf 'pay now!' | send -k order-kcat -H schedule-after=2s -H schedule-target-topic=reminders

# With -Z an empty value is null. A null value and no trigger: cancel.
printf 'never' | send -k order-kcat-2 -H schedule-after=3s -H schedule-target-topic=reminders
echo 'order-kcat-2:' | send -Z -K:

# A command in the JSON form.
printf '{"id": "order-kcat-3", "trigger": {"after": "2s"}, "target": {"topic": "reminders"}, "payload": {"json": {"a": 1}}}' |
    send -k order-kcat-3 -H content-type=application/vnd.light-scheduler.command+json
