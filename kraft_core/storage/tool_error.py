"""How kafka-storage ends where it does not do what it was asked: exit code 1 in every case."""

from __future__ import annotations

ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"
RUNTIME_EXCEPTION = "java.lang.RuntimeException"


class ToolError(Exception):
    """text: Kafka's message. thrown: the class of an exception that nothing catches, whose stack trace the
    tool prints; None where it prints the message alone (TerseFailure, FormatterException).
    """

    def __init__(self, text: str, thrown: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.thrown = thrown


def config_error(text: str) -> ToolError:
    """A ConfigException."""
    return ToolError(text, CONFIG_EXCEPTION)


def invalid_value(name: str, value: object, text: str) -> ToolError:
    """A ConfigException about the value of one entry."""
    return config_error(f"Invalid value {value} for configuration {name}: {text}")


def unmet_requirement(text: str) -> ToolError:
    """Scala's require()."""
    return ToolError(f"requirement failed: {text}", ILLEGAL_ARGUMENT)
