# shellcheck shell=bash disable=SC2034 # used by those that source it
# Sourced by the other scripts. G: the folder tests/kafka. W: the lab, where releases and scenarios are written.
G=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
W=$(realpath -m "${KAFKA_LAB:-$G/../../.kafka-lab}")
