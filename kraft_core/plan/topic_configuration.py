"""plan topic configure: IncrementalAlterConfigs of topics as a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_config_risks import config_missing, config_risks
from kraft_core.plan.topic_words import names_words
from kraft_core.topic_control.configuration import ConfigOp, TopicConfigChanges, alter_configs
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.requests import TopicResult

CONFIGS_TOOL = "bin/kafka-configs.sh"


@dataclass(frozen=True, slots=True)
class ConfigureTopics:
    """changes: by config, the new value; None removes it. The same for each topic."""

    names: tuple[str, ...]
    changes: Mapping[str, str | None]
    validate_only: bool = False
    is_limited: bool = False
    is_placed: bool = False

    @property
    def words(self) -> str:
        what = "validate configs of" if self.validate_only else "configure"
        return f"{what} topic {names_words(self.names)}"

    @property
    def is_written(self) -> bool:
        return not self.validate_only

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        ops = {
            name: (ConfigOp.DELETE if value is None else ConfigOp.SET, value)
            for name, value in self.changes.items()
        }
        return alter_configs(controller, [TopicConfigChanges(name, ops) for name in self.names])

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        for each in results:
            if not each.is_refused:
                yield from config_risks(controller, each)

    def missing(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        accepted = [each for each in results if not each.is_refused]
        yield from dict.fromkeys(words for each in accepted for words in config_missing(controller, each))

    def evidence(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        for each in results:
            held = controller.topic_configs(each.name)
            for name, value in self.changes.items():
                before = f"is {held[name]}" if name in held else "is not set on the topic"
                after = "would be removed" if value is None else f"would be {value}"
                yield f"{each.name}: {name} {before}, {after}"

    def steps(self, _: ActiveController, servers: str) -> Iterator[PlanStep]:
        if self.validate_only:
            return
        set_ = [f"{name}={_bracketed(value)}" for name, value in self.changes.items() if value is not None]
        gone = [name for name, value in self.changes.items() if value is None]
        options = f" --add-config {quote(','.join(set_))}" if set_ else ""
        options += f" --delete-config {quote(','.join(gone))}" if gone else ""
        for name in self.names:
            entity = f"--entity-type topics --entity-name {quote(name)}"
            command = f"{CONFIGS_TOOL} {servers} --alter {entity}{options}"
            yield PlanStep(f"configure {name}", command, f"Completed updating config for topic {name}.")


def _bracketed(value: str) -> str:
    """kafka-configs takes a value with commas in brackets."""
    return f"[{value}]" if "," in value else value
