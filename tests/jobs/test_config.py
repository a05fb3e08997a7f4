"""kraftlake.toml: defaults, names of clusters, thresholds; errors in the file are reported in one line."""

from __future__ import annotations

import argparse
import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cli import VERBS, main
from jobs.quorum.lake_samples import failure_samples
from jobs.runtime import settings
from jobs.runtime.outcome import Failure
from jobs.runtime.progress import Progress
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage import NoLakeError, prepare_lake, shown_configs
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES, DERIVATIONS
from transforms.quality.expectation_settings import configured
from transforms.quality.expectation_suites import suites

DOCUMENTED = Path(__file__).parents[2] / "docs" / "kraftlake.toml"
MINI = "roWi3HLRRCuDirielH5nnw"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kraftlake.toml"


def read(file: Path, text: str) -> settings.Settings:
    file.write_text(text)
    return settings.read_settings(file)


def test_the_documented_file_holds_every_setting() -> None:
    known = settings.read_settings(DOCUMENTED)
    assert set(known.content) == {*settings.NAMED, settings.SHOWN_CONFIGS, *settings.TABLES}
    assert [c.name for c in known.clusters] == ["orders-prod", "orders-test"]
    own = {
        c.expectations[0].name for s in configured(suites(), known.expectations) for c in s.checks if c.own
    }
    assert own == {"two_replicas_at_least", "elections_are_short"}


def test_config_prints_an_equal_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", str(DOCUMENTED)]) == 0
    assert tomllib.loads(capsys.readouterr().out) == tomllib.loads(DOCUMENTED.read_text())
    assert main(["config", "--config", str(DOCUMENTED), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["wait"] == 600


def test_config_prints_the_defaults_without_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "# no file; these are the defaults"
    assert {"# lake is not set", '# fail_on = "new" by default', "# wait = 0.0 by default"} <= set(printed)
    assert len(printed) == 1 + len(settings.NAMED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lake = 3", "3 is not a valid lake"),
        ("[expectations.captures.is_fresh]\nallowed = 1", "suite captures has no expectation is_fresh"),
    ],
)
def test_config_refuses_invalid_values(
    file: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file.write_text(text)
    assert main(["config", "--config", str(file)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_sets_flags_and_flags_win(
    file: Path, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mini = golden / "v4.4.0-mini"
    file.write_text(f'lake = "{tmp_path}/lake"\ncaptures = ["{mini}"]\n[clusters.tiny]\nid = "{MINI}"\n')
    words = ["run", "--config", str(file), "--dry-run"]
    assert main([*words, "--cluster", "tiny"]) == 0
    assert capsys.readouterr().out.count(MINI) == 2
    assert main([*words, "--captures", str(mini / "node-1")]) == 0
    assert capsys.readouterr().out.count(MINI) == 1


def test_captures_are_named_several_times(
    file: Path, golden: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """All are read; those of the settings file only where none are named."""
    mini = golden / "v4.4.0-mini"
    file.write_text(f'lake = "{tmp_path}/lake"\ncaptures = ["{golden}/corrupt"]\n')
    words = ["run", "--config", str(file), "--dry-run"]
    nodes = [str(node) for node in sorted(mini.glob("node-*"))]
    assert len(nodes) == 2
    for named in (
        ["--captures", *nodes],
        ["--captures", nodes[0], "--captures", nodes[1]],
        [f"--captures={nodes[0]}", f"--captures={nodes[1]}"],
    ):
        assert main([*words, *named]) == 0
        read = capsys.readouterr().out.splitlines()
        assert sorted(line.split()[-1] for line in read) == nodes


def test_a_file_does_not_choose_between_sources(
    file: Path, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell browses the given directory, whatever lake the file names."""
    file.write_text('lake = "/nowhere"')
    node = golden / "v4.4.0-mini/node-1"
    assert main(["shell", "--config", str(file), str(node), "ls", "/"]) == 0
    assert "image" in capsys.readouterr().out


def test_the_variable_and_the_default_place(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings.read_settings(None).file is None
    file.write_text("wait = 5")
    assert settings.read_settings(None).flags == {"wait": 5}
    other = tmp_path / "other.toml"
    other.write_text("wait = 6")
    monkeypatch.setenv(settings.VARIABLE, str(other))
    assert settings.read_settings(None).flags == {"wait": 6}


def test_names_are_accepted_wherever_ids_are(file: Path) -> None:
    known = read(file, '[clusters.a]\nid = "A"\n[clusters.b]\nid = "B"')
    args = argparse.Namespace(cluster=["b", "other"], cluster_id="a")
    settings.with_cluster_ids(args, known)
    assert (args.cluster, args.cluster_id) == (["B", "other"], "A")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lake =", "cannot be read"),
        ("lakes = 1", "unknown setting lakes"),
        ("clusters = 1", "clusters must be a table"),
        ("[clusters.a]\nowner = 'x'", "cluster a must have an id"),
        ("[clusters.a]\nid = 'x'\nteam = 'y'", "cluster a must have an id"),
        ("[clusters.a]\nid = 1", "must be strings"),
        ("[clusters.a]\nid = 'x'\n[clusters.b]\nid = 'x'", "b and a have the same id"),
        ("captures = 'x'", "captures must be a list"),
        ("[spark]\nspark.ui.enabled = true", "[spark] takes strings under quoted names"),
        ("wait = 'soon'", "'soon' is not a valid wait"),
        ("fail_on = 'always'", "fail_on must be one of new, open, never"),
    ],
)
def test_errors_are_reported_in_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file.write_text(text)
    words = ["run", "--config", str(file), "--lake", str(tmp_path / "lake"), "--captures", "x"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--config", str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.endswith("none.toml cannot be read: No such file or directory\n")


def test_a_flag_of_every_verb_before_the_verb(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--config", str(file), "config"], ["--log=x", "config"]):
        assert main(words) == 2
        flag = words[0].removesuffix("=x")
        said = f"kraftlake: {flag} comes after the verb, as in kraftlake config {flag} FILE\n"
        assert capsys.readouterr().err == said


def test_clusters_are_named_in_the_lake(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Written once, left alone while nothing changes, then replaced."""
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "lake.json").write_text('{"format_version": 1}')
    file.write_text(f'[clusters.tiny]\nid = "{MINI}"\nowner = "us"\n')
    words = ["clusters", "--lake", str(lake), "--config", str(file), "--format", "json"]
    log = lake / "cluster_names/_delta_log"
    assert main(words) == 0
    written = set(log.iterdir())
    assert main(words) == 0
    assert set(log.iterdir()) == written
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (row["name"], row["cluster_id"], row["owner"], row["captures"]) == (
        "tiny",
        MINI,
        "us",
        0,
    )
    file.write_text('[clusters.other]\nid = "X"\n')
    assert main(words) == 0
    assert rows_with(lake, CLUSTER_NAMES) == [
        {"cluster_id": "X", "name": "other", "environment": None, "owner": None}
    ]


@pytest.mark.usefixtures("spark")
def test_clusters_and_metrics_report_failed_derivations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    derivations = [
        a_row(DERIVATIONS, cluster_id="a", derived_rows=[]),
        a_row(DERIVATIONS, cluster_id="b", failure="OverflowError", derived_rows=[]),
    ]
    writer = TableWriter(tmp_path, None)
    writer.create(DERIVATIONS)
    writer.put(DERIVATIONS, derivations, by="cluster_id")
    captures = [a_row(CAPTURES, cluster_id=c, capture_id=c, captured_at=NOON) for c in "ab"]
    writer.create(CAPTURES)
    writer.put(CAPTURES, captures, by="cluster_id")
    assert main(["clusters", "--lake", str(tmp_path), "--format", "json"]) == 0
    clusters = map(json.loads, capsys.readouterr().out.splitlines())
    assert {row["cluster_id"]: row["failure"] for row in clusters} == {"a": None, "b": "OverflowError"}
    samples = {(s.name, s.labels["cluster_id"]): s.value for s in failure_samples(tmp_path)}
    failed, behind = "kraftlake_derivation_failed", "kraftlake_not_derived"
    assert samples == {(failed, "a"): 0, (failed, "b"): 1, (behind, "a"): 0, (behind, "b"): 0}


VERBS_OF_THEIR_OWN = {"findings": ("list", "ack"), "restore": ("plan", "apply", "verify", "rehearse")}


@pytest.mark.parametrize(
    ("verb", "own"), [(verb, own) for verb, all_ in VERBS_OF_THEIR_OWN.items() for own in all_]
)
def test_the_verbs_of_a_verb_take_settings(verb: str, own: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([verb, own, "--help"])
    assert end.value.code == 0
    assert "--config FILE" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_settings_and_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([verb, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    if verb in VERBS_OF_THEIR_OWN:  # which take them
        assert "|".join(VERBS_OF_THEIR_OWN[verb]) in shown
    else:
        assert "--config FILE" in shown
    assert f"kraftlake {verb}" in shown.split("examples:")[1]


def test_a_log_of_json_lines(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    progress = Progress(log)
    with progress.stage("scan", "3 files"):
        progress.say("half done")
    with pytest.raises(ZeroDivisionError), progress.stage("write"):
        1 / 0  # noqa: B018
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line.get("stage")) for line in lines] == [
        ("began", "scan"),
        ("said", None),
        ("done", "scan"),
        ("began", "write"),
        ("failed", "write"),
    ]
    assert {line["run_id"] for line in lines} == {progress.run_id}
    assert all(line["at"].endswith("Z") for line in lines)


def test_values_nested_beyond_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text(f"lake = {'[' * 100_000}")
    assert main(["config", "--config", str(deep)]) == 2
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('shown_configs = "cookie"', "shown_configs must be a list of names"),
        ("shown_configs = [1]", "shown_configs must be a list of names"),
        ('shown_configs = ["a", "ssl.key.password"]', "Kafka defines ssl.key.password as a password"),
        ('shown_configs = ["listener.name.x.sasl.jaas.config"]', "as a password; it is never shown"),
    ],
)
def test_configs_that_cannot_be_shown(file: Path, text: str, message: str) -> None:
    with pytest.raises(Failure, match=message):
        read(file, text)


def test_a_lake_keeps_the_names_that_it_was_made_with(tmp_path: Path) -> None:
    prepare_lake(tmp_path / "lake", {"b", "a"})
    prepare_lake(tmp_path / "lake", {"a", "b"})
    assert shown_configs(tmp_path / "lake") == {"a", "b"}
    for other in (set[str](), {"a"}, {"a", "b", "c"}):
        with pytest.raises(NoLakeError, match=r'created with shown_configs = \["a", "b"\]'):
            prepare_lake(tmp_path / "lake", other)


def test_a_lake_of_an_earlier_version_shows_no_more_than_kafka_defines(tmp_path: Path) -> None:
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    prepare_lake(tmp_path)
    with pytest.raises(NoLakeError, match="the settings have"):
        prepare_lake(tmp_path, {"a"})


def test_config_hides_what_spark_would(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(
        '[spark]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"\n'
        '"spark.hadoop.fs.azure.account.key.x" = "hunter2"\n'
        '"spark.executor.memory" = "2g"\n'
    )
    for words in ([], ["--format", "json"]):
        assert main(["config", "--config", str(file), *words]) == 0
        printed = capsys.readouterr().out
        assert "hunter2" not in printed
        assert printed.count("[redacted]") == 2
        assert "2g" in printed


def test_a_number_that_python_does_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = tmp_path / "long.toml"
    long.write_text(f"wait = {'9' * 5000}")
    assert main(["config", "--config", str(long)]) == 2
    assert "cannot be read" in capsys.readouterr().err
