"""The configuration: what is read, what is refused and in which words, and what is generated."""

import json
import os
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rl_insight import config_docs
from rl_insight.config import (
    KEYS,
    check_names,
    from_mapping,
    get,
    heatmap_file,
    json_schema,
    markdown_tables,
    nearest_keys,
    output_folder,
    parse_names,
    parse_ranks,
    parse_steps,
    resolve,
    slice_json,
    to_mapping,
    yaml_text,
)
from rl_insight.errors import ConfigError

ROOT = Path(__file__).parents[2]

# The table of the design, by hand.
DEFAULTS = {
    "preset": "timeline",
    "input.path": None,
    "input.type": "multi_json",
    "input.rank_list": "all",
    "input.identity": [],
    "input.settle": 1,
    "output.path": "output",
    "output.live": False,
    "timeline.parser.type": "mstx",
    "timeline.parser.step": None,
    "timeline.parser.role": None,
    "timeline.parser.range_depth": 2,
    "timeline.visualizer.type": "html",
    "timeline.visualizer.width": 2000,
    "timeline.visualizer.scale": 2,
    "heatmap.parser.type": "gmm",
    "heatmap.parser.step": None,
    "heatmap.parser.role": None,
    "heatmap.parser.group_list_type": "auto",
    "heatmap.parser.ep_size": None,
    "heatmap.visualizer.type": "gmm_heatmap",
    "heatmap.visualizer.dpi": 200,
    "heatmap.visualizer.cmap": "viridis",
    "heatmap.visualizer.gmm_per_layer": 3,
    "heatmap.visualizer.phase": "forward",
    "heatmap.visualizer.micro_batch": "first",
    "parse.ranks_per_job": "auto",
    "run.strict": False,
    "pipeline.type": "OfflineInsightPipeline",
}

FLAGS = {
    "--input-path": "input.path",
    "--input-type": "input.type",
    "--profiler-type": "timeline.parser.type",
    "--output-path": "output.path",
    "--vis-type": "timeline.visualizer.type",
    "--rank-list": "input.rank_list",
    "--settle": "input.settle",
    "--pipeline-type": "pipeline.type",
    "--strict": "run.strict",
    "--preset": "preset",
}


def read(key, value):
    """What a key gives for a value, given as YAML would give it."""
    nested = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return get(from_mapping(nested), key)


def refusal(key, value):
    with pytest.raises(ConfigError) as caught:
        read(key, value)
    return str(caught.value)


def test_an_empty_configuration_is_the_documented_defaults():
    config = from_mapping({})
    assert {key: get(config, key) for key in KEYS} == DEFAULTS


def test_the_flags_are_the_documented_ones():
    assert {key.flag: key.name for key in KEYS.values() if key.flag} == FLAGS


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("input.rank_list", 0, "0"),
        ("input.rank_list", [0, 1], "0,1"),
        ("input.rank_list", "0,1,4-7", "0,1,4-7"),
        ("input.rank_list", " 7, 5 - 6 ,4,0 ", "0,4-7"),
        ("input.rank_list", ["0-2", 1, 9], "0-2,9"),
        ("input.rank_list", "[3]", "3"),
        ("input.rank_list", "ALL", "all"),
        ("input.path", 2024, "2024"),
        ("input.identity", r"r(?P<rank>\d+)", [r"r(?P<rank>\d+)"]),
        ("timeline.parser.step", 1, "1"),
        ("timeline.parser.step", "1-3", "1-3"),
        ("timeline.parser.step", "all", None),
        ("timeline.parser.step", "none", None),
        ("timeline.parser.role", ["actor_update", "ref"], "actor_update,ref"),
        ("timeline.parser.range_depth", "0", 0),
        ("timeline.visualizer.type", "png, html,png", "png,html"),
        ("timeline.visualizer.type", ["html", "png"], "html,png"),
        ("timeline.visualizer.width", "1200", 1200),
        ("timeline.visualizer.scale", "2.0", 2),
        ("timeline.visualizer.scale", 1.5, 1.5),
        ("heatmap.visualizer.gmm_per_layer", "Auto", "auto"),
        ("heatmap.visualizer.gmm_per_layer", 2, 2),
        ("heatmap.parser.group_list_type", "CUMSUM", "cumsum"),
        ("heatmap.parser.ep_size", "", None),
        ("parse.ranks_per_job", "null", "auto"),
        ("parse.ranks_per_job", "AUTO", "auto"),
        ("input.settle", "0.5", 0.5),
        ("input.settle", 30, 30),
        ("run.strict", "true", True),
        ("run.strict", "no", False),
        ("run.strict", 1, True),
        ("output.path", None, "output"),
    ],
)
def test_a_value_may_be_written_in_every_way_that_yaml_and_shells_write_it(key, value, expected):
    result = read(key, value)
    assert (result, type(result)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (
            "timeline.visualiser.type",
            "html",
            "timeline.visualiser.type: there is no such key;"
            " did you mean timeline.visualizer.type?",
        ),
        ("cmap", "hot", "cmap: there is no such key; did you mean heatmap.visualizer.cmap?"),
        (
            "rank-list",
            "0",
            "rank-list: there is no such key; did you mean input.rank_list?",
        ),
        (
            "memory.parser.type",
            "memory",
            "memory.parser.type: there is no such key; keys begin with"
            " input, output, timeline, heatmap, parse, run, pipeline",
        ),
        (
            "input",
            "here",
            "input: this is a section, not a value; its keys are"
            " input.path, input.type, input.rank_list, input.identity, input.settle",
        ),
        ("run.strict", {"a": 1}, "run.strict: this is one value, not a section"),
        (
            "input.type",
            "json",
            "input.type: 'json' is not known (the only value is multi_json)",
        ),
        (
            "heatmap.parser.group_list_type",
            "count",
            "heatmap.parser.group_list_type: 'count' is not known; did you mean counts?"
            " (allowed are auto, counts, cumsum, pairs)",
        ),
        (
            "input.rank_list",
            "7-4",
            "input.rank_list: the range 7-4 runs backwards"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "input.rank_list",
            -1,
            "input.rank_list: '-1' is neither a number nor a range such as 4-7"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "timeline.parser.step",
            "a",
            "timeline.parser.step: 'a' is neither a number nor a range such as 4-7"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "timeline.parser.step",
            "0-70000000000",
            "timeline.parser.step: 0-70000000000 is too large: the largest number is 9999999"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "input.rank_list",
            [],
            "input.rank_list: it names no number (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "timeline.visualizer.width",
            "wide",
            "timeline.visualizer.width: 'wide' is not a whole number from 200 to 20000",
        ),
        (
            "timeline.visualizer.width",
            True,
            "timeline.visualizer.width: True is not a whole number from 200 to 20000",
        ),
        (
            "timeline.visualizer.scale",
            "nan",
            "timeline.visualizer.scale: 'nan' is not a number from 0.1 to 20",
        ),
        (
            "heatmap.visualizer.gmm_per_layer",
            0,
            "heatmap.visualizer.gmm_per_layer: 0 is not a whole number from 1 to 1000, or auto",
        ),
        ("run.strict", "maybe", "run.strict: 'maybe' is neither true nor false"),
        ("output.path", "", "output.path: it is empty"),
        ("input.path", [], "input.path: [] is not a folder"),
        (
            "input.rank_list",
            "0-9999999",
            "input.rank_list: '0-9999999' is 10,000,000 numbers; at most 1,000,000 can be named"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "input.rank_list",
            "0-999998,1000001-1000002",
            "input.rank_list: '0-999998,1000001-1000002' is 1,000,001 numbers; at most 1,000,000"
            " can be named (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "input.rank_list",
            "١",
            "input.rank_list: '١' is neither a number nor a range such as 4-7"
            " (allowed are all or numbers such as 0,1,4-7)",
        ),
        (
            "timeline.visualizer.width",
            "１２００",
            "timeline.visualizer.width: '１２００' is not a whole number from 200 to 20000",
        ),
        (
            "timeline.visualizer.scale",
            "２",
            "timeline.visualizer.scale: '２' is not a number from 0.1 to 20",
        ),
        ("output.path", "a\x1bb", r"output.path: 'a\x1bb' holds a control character"),
        ("timeline.visualizer.type", ",", "timeline.visualizer.type: it names nothing"),
        (
            "timeline.parser.type",
            "torch,nvtx",
            "timeline.parser.type: exactly one name is needed, not 'torch,nvtx'",
        ),
        (
            "input.identity",
            "(",
            "input.identity: '(' is not a regular expression:"
            " missing ), unterminated subpattern at position 0",
        ),
        (
            "input.identity",
            [r"(?P<rnk>\d)"],
            r"input.identity: '(?P<rnk>\\d)' names the group 'rnk';"
            " allowed are role, rank, step, replica, host",
        ),
        (
            "input.identity",
            ".*",
            r"input.identity: '.*' has no named group, such as (?P<rank>\d+);"
            " allowed are role, rank, step, replica, host",
        ),
        ("preset", "memory", "Unknown preset: memory. Supported presets: all, heatmap, timeline"),
        (
            "pipeline.type",
            "Online",
            "pipeline.type: 'Online' is not known (the only value is OfflineInsightPipeline)",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(key, value, text):
    assert refusal(key, value) == text


def test_a_configuration_that_is_no_mapping_is_refused():
    with pytest.raises(ConfigError) as caught:
        from_mapping(["input"])
    assert str(caught.value) == "the configuration is ['input'], not a mapping of keys to values"


def test_dotted_keys_and_empty_sections_are_read():
    config = from_mapping({"input.path": "x", "timeline": None, "heatmap.visualizer": {"dpi": 90}})
    assert (config.input.path, config.heatmap.visualizer.dpi) == ("x", 90)


def test_a_picture_wider_than_can_be_drawn_is_refused():
    with pytest.raises(ConfigError) as caught:
        from_mapping({"timeline": {"visualizer": {"width": 20000, "scale": 2}}})
    assert str(caught.value) == (
        "timeline.visualizer.width: 20000 × scale 2 is 40000 pixels; at most 32000 can be drawn"
    )


@pytest.mark.parametrize(
    ("given_values", "expected"),
    [
        ({}, "timeline"),
        ({"timeline": {"parser": {"type": "torch"}}}, "timeline"),
        ({"heatmap": {"visualizer": {"dpi": 300}}}, "heatmap"),
        ({"heatmap": None}, "timeline"),
        ({"preset": None, "heatmap": {"visualizer": {"dpi": 300}}}, "heatmap"),
        ({"preset": "timeline", "heatmap": {"visualizer": {"dpi": 300}}}, "timeline"),
        ({"preset": "ALL"}, "all"),
    ],
)
def test_the_preset_follows_from_the_keys_that_are_given(given_values, expected):
    assert from_mapping(given_values).preset == expected


def test_the_command_line_beats_the_file_and_the_file_the_defaults(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("preset: all\ninput: {path: a, rank_list: 0-3}\noutput: {path: b}\n")
    config = resolve([("output.path", "c"), ("output.path", "d")], str(file))
    assert (config.input.path, config.input.rank_list, config.output.path) == ("a", "0-3", "d")
    assert config.preset == "all"
    assert resolve([], str(file), preset="timeline").preset == "timeline"
    assert resolve([("preset", "heatmap")], str(file)).preset == "heatmap"


def test_a_heatmap_key_in_the_file_or_on_the_command_line_chooses_the_heatmap(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("heatmap:\n  visualizer:\n    dpi: 90\n")
    assert resolve([("input.path", "x")], str(file)).preset == "heatmap"
    assert resolve([("input.path", "x"), ("heatmap.parser.step", "1")]).preset == "heatmap"


def test_text_in_a_file_means_what_it_means_on_a_command_line(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text(
        "input:\n  path: 2024-01-02\n  rank_list: 010\n"
        "timeline:\n  parser:\n    role: no\n    step:\n"
    )
    config = resolve([], str(file))
    assert config.input.path == "2024-01-02"
    assert config.input.rank_list == "10"
    assert config.timeline.parser.role == "no"
    assert config.timeline.parser.step is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("input:\n  path: [x\n", ", line 3: expected ',' or ']', but got '<stream end>'"),
        ("input: {path: x}\ninput: {path: y}\n", ", line 2: the key 'input' stands twice"),
        ("? [a]\n: b\n", ", line 1: a key must be a word"),
        ("input:\n  path: !!int x\n", ", line 2: the value is no !!int; leave the tag away"),
        ("input:\n  path: !!int ''\n", ", line 2: the value is no !!int; leave the tag away"),
        ("a: !!float x\n", ", line 1: the value is no !!float; leave the tag away"),
        ("a: !!bool x\n", ", line 1: the value is no !!bool; leave the tag away"),
        ("a: !!str [x]\n", ", line 1: the value is no !!str; leave the tag away"),
        ("a: !!timestamp x\n", ", line 1: the value is no !!timestamp; leave the tag away"),
        (
            "a: !!timestamp 2024-13-45\n",
            ", line 1: the value is no !!timestamp; leave the tag away",
        ),
        (
            "input.path: /x\ninput: {path: /y}\n",
            ": input.path: it stands twice, in dotted and in nested spelling",
        ),
        (
            "heatmap: {visualizer.dpi: 90, visualizer: {dpi: 90}}\n",
            ": heatmap.visualizer.dpi: it stands twice, in dotted and in nested spelling",
        ),
        (
            "a: !!python/object:os.system {}\n",
            ", line 1: could not determine a constructor for the"
            " tag 'tag:yaml.org,2002:python/object:os.system'",
        ),
        (
            "just words\n",
            ": it must hold keys and values such as 'input:' and, indented below it,"
            " 'path: FOLDER'",
        ),
        ("inptu:\n  path: x\n", ": inptu.path: there is no such key; did you mean input.path?"),
        ("input:\n  pth: x\n", ": input.pth: there is no such key; did you mean input.path?"),
    ],
)
def test_a_broken_file_is_named_with_the_line(tmp_path, content, text):
    file = tmp_path / "my.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        resolve([], str(file))
    assert str(caught.value) == f"Config file {file}{text}"


def test_a_missing_file_is_named():
    with pytest.raises(ConfigError) as caught:
        resolve([], "no/such.yaml")
    assert str(caught.value) == "Config file not found: no/such.yaml"


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_of_a_file_is_said_to_be_empty(path):
    with pytest.raises(ConfigError) as caught:
        resolve([], path)
    assert str(caught.value) == "Config file: its path is empty; write --config-path FILE"


def test_a_file_of_a_user_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"^Config file ~no-such-user/c\.yaml: "):
        resolve([], "~no-such-user/c.yaml")


def test_a_file_that_is_no_text_or_a_folder_is_named(tmp_path):
    binary = tmp_path / "x.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"^Config file .*x.yaml: it is not text: "):
        resolve([], str(binary))
    with pytest.raises(ConfigError, match=r"^Config file .*: it cannot be read: Is a directory$"):
        resolve([], str(tmp_path))


def test_a_file_without_end_is_refused():
    with pytest.raises(ConfigError, match=r"^Config file /dev/zero: it has more than 1,000,000 b"):
        resolve([], "/dev/zero")


def test_half_a_character_is_no_path(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text('input: {path: "a\\ud800"}\n')
    with pytest.raises(ConfigError, match=r"input\.path: 'a\\ud800' holds half a character$"):
        resolve([], str(file))
    # Bytes that are no UTF-8 are a path like any other.
    assert resolve([("input.path", os.fsdecode(b"a\xff"))]).input.path == os.fsdecode(b"a\xff")


def test_an_empty_file_is_the_defaults(tmp_path):
    file = tmp_path / "my.yaml"
    file.write_text("# nothing yet\n")
    assert resolve([("input.path", "x")], str(file)) == from_mapping({"input.path": "x"})


def test_without_an_input_folder_nothing_can_start():
    with pytest.raises(ConfigError) as caught:
        resolve([("preset", "all")])
    assert str(caught.value) == (
        "input.path is required: name the folder to read with --input-path FOLDER"
        " (or input.path=FOLDER)"
    )


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert read("input.path", "~/run") == "/home/ada/run"
    assert read("input.path", "run~1") == "run~1"


def test_getting_a_key_that_does_not_exist_names_the_nearest():
    with pytest.raises(ConfigError) as caught:
        get(from_mapping({}), "input.pth")
    assert str(caught.value) == "input.pth: there is no such key; did you mean input.path?"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("input_path", ("input.path",)),
        ("profiler-type", ("timeline.parser.type",)),
        ("visualizer.type", ("timeline.visualizer.type", "heatmap.visualizer.type")),
        ("dpi", ("heatmap.visualizer.dpi",)),
        ("memory.parser.type", ()),
        ("xyzzy", ()),
    ],
)
def test_the_nearest_keys_are_found_though_beginning_or_separators_are_wrong(word, expected):
    assert nearest_keys(word) == expected


def test_what_is_written_is_read_back_unchanged():
    config = from_mapping(
        {
            "preset": "all",
            "input": {"path": "x", "rank_list": [3, 1, 2], "identity": [r"(?P<step>\d)"]},
            "timeline": {"visualizer": {"scale": 1.5, "type": "png"}},
            "heatmap": {"visualizer": {"gmm_per_layer": "auto"}},
        }
    )
    mapping = to_mapping(config)
    assert mapping["input"]["rank_list"] == "1-3"
    assert from_mapping(yaml.safe_load(yaml.safe_dump(mapping))) == config
    assert from_mapping(mapping) == config


def test_a_slice_is_equal_for_equal_values_however_they_were_written():
    keys = ["timeline.visualizer.scale", "input.rank_list"]
    one = from_mapping({"timeline": {"visualizer": {"scale": "2.0"}}, "input.rank_list": "0-1"})
    two = from_mapping({"input.rank_list": [1, 0]})
    assert slice_json(one, keys) == slice_json(two, keys[::-1])
    assert slice_json(one, keys) == '{"input.rank_list": "0,1", "timeline.visualizer.scale": 2}'


def test_ranks_steps_and_names_are_taken_apart():
    assert parse_ranks("all") is None
    assert parse_ranks("0,1,4-7") == {0, 1, 4, 5, 6, 7}
    assert parse_steps(None) is None
    assert parse_steps("1-3") == {1, 2, 3}
    assert parse_names("html, png,html") == ("html", "png")
    assert parse_names(None) == ()


@pytest.mark.parametrize("text", ["7-4", "-1", "a", "", "1-", "1--2", "0x1", "1.5", "10000000"])
def test_nonsense_is_no_rank(text):
    with pytest.raises(ValueError, match=r"\w"):
        parse_ranks(text)


@given(st.frozensets(st.integers(0, 300), min_size=1))
def test_any_set_of_ranks_survives_being_written(ranks):
    text = read("input.rank_list", sorted(ranks, reverse=True))
    assert parse_ranks(text) == ranks
    assert read("input.rank_list", text) == text


def test_names_that_are_not_registered_are_refused_with_what_there_is():
    config = from_mapping({"timeline.parser.type": "tocrh", "timeline.visualizer.type": "html,pgn"})
    with pytest.raises(ConfigError) as caught:
        check_names(config, {"timeline.parser.type": ["auto", "torch"]})
    assert str(caught.value) == (
        "timeline.parser.type: 'tocrh' is not known; did you mean torch?"
        " (available are auto, torch)"
    )
    with pytest.raises(ConfigError) as caught:
        check_names(config, {"timeline.visualizer.type": ["html", "png"]})
    assert str(caught.value) == (
        "timeline.visualizer.type: 'pgn' is not known; did you mean png? (available are html, png)"
    )
    with pytest.raises(ConfigError) as caught:
        check_names(from_mapping({}), {"timeline.parser.type": ["auto", "torch"]})
    assert str(caught.value) == (
        "timeline.parser.type: mstx is not part of this installation (available are auto, torch)"
    )
    check_names(config, {"timeline.visualizer.type": ["html", "pgn"]})


@pytest.mark.parametrize(
    ("preset", "path", "folder", "file"),
    [
        ("heatmap", "a/b.png", "a", "b.png"),
        ("heatmap", "a/b.html", "a", "b.png"),
        ("heatmap", "b.png", ".", "b.png"),
        ("heatmap", "a/v1.5", "a/v1.5", "gmm_heatmap.png"),
        ("all", "a/b.png", "a", "b.png"),
        ("timeline", "a/b.png", "a/b.png", "gmm_heatmap.png"),
    ],
)
def test_the_output_of_a_heatmap_may_name_a_file(preset, path, folder, file):
    config = from_mapping({"preset": preset, "output.path": path})
    assert (output_folder(config), heatmap_file(config)) == (Path(folder), file)


def test_an_existing_folder_stays_a_folder_whatever_it_is_called(tmp_path):
    folder = tmp_path / "x.png"
    folder.mkdir()
    config = from_mapping({"preset": "heatmap", "output.path": str(folder)})
    assert (output_folder(config), heatmap_file(config)) == (folder, "gmm_heatmap.png")


def test_a_heatmap_is_not_written_in_other_formats():
    with pytest.raises(ConfigError) as caught:
        from_mapping({"preset": "heatmap", "output.path": "a/b.pdf"})
    assert str(caught.value) == (
        "output.path: a heatmap is written as .png or .html, not as .pdf; did you mean a/b.png?"
    )


def test_the_schema_is_a_schema_and_agrees_with_what_is_read():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for good in (
        to_mapping(from_mapping({})),
        yaml.safe_load(yaml_text()),
        {"input": {"rank_list": 0}, "timeline": {"parser": {"step": [1, 2]}}},
        {"input": {"identity": r"(?P<rank>\d)"}, "run": {"strict": None}},
    ):
        validator.validate(good)
        from_mapping(good)
    for bad in (
        {"inptu": {}},
        {"timeline": {"visualiser": {}}},
        {"timeline": {"visualizer": {"width": 1}}},
        {"heatmap": {"visualizer": {"gmm_per_layer": "some"}}},
        {"preset": "memory"},
        {"input": "here"},
    ):
        assert not validator.is_valid(bad)
        with pytest.raises(ConfigError):
            from_mapping(bad)


def test_the_generated_files_are_up_to_date():
    schema = ROOT / "workflow" / "schemas" / "config.schema.json"
    assert json.loads(schema.read_text("utf-8")) == json_schema()
    assert (ROOT / "config" / "config.yaml").read_text("utf-8") == yaml_text()
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert f"{config_docs.BEGIN}\n{markdown_tables()}{config_docs.END}" in page


def test_the_shipped_file_draws_all_of_the_demo_and_keeps_every_other_default():
    shipped = from_mapping(yaml.safe_load((ROOT / "config" / "config.yaml").read_text("utf-8")))
    differing = {key: get(shipped, key) for key in KEYS if get(shipped, key) != DEFAULTS[key]}
    assert differing == {
        "preset": "all",
        "input.path": "examples/demo/data",
        "timeline.parser.type": "auto",
        "timeline.visualizer.type": "html,png",
        "heatmap.visualizer.type": "gmm_heatmap,gmm_heatmap_html",
    }


def test_every_key_is_documented():
    tables = markdown_tables()
    for key in KEYS.values():
        assert f"| `{key.name}` |" in tables
        assert key.description.endswith(".")
        assert key.type


def test_the_example_file_of_the_documentation_is_valid():
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```yaml\n")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        from_mapping(yaml.safe_load(block))


def test_generating_writes_what_the_checkout_holds(tmp_path):
    for folder in ("workflow/schemas", "config", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    page = tmp_path / "docs" / "configuration.md"
    page.write_text(f"before\n{config_docs.BEGIN}\nold\n{config_docs.END}\nafter\n")
    config_docs.main(tmp_path)
    assert page.read_text("utf-8") == (
        f"before\n{config_docs.BEGIN}\n{markdown_tables()}{config_docs.END}\nafter\n"
    )
    assert (tmp_path / "config" / "config.yaml").read_text("utf-8") == yaml_text()
