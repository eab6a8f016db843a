"""What is generated from the keys: the JSON schema, the tables of the docs, the commented YAML.

`python -m rl_insight.config_docs CHECKOUT` writes them where they belong in a checkout; a test
compares the files with what this module gives.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rl_insight.config_keys import KEYS, SECTIONS, Key, plain

# What the file in `config/` sets besides the defaults: the bundled demo data, all pictures of it.
SHIPPED: Mapping[str, object] = {
    "preset": "all",
    "input.path": "examples/demo/data",
    "timeline.parser.type": "auto",
    "timeline.visualizer.type": "html,png",
    "heatmap.visualizer.type": "gmm_heatmap,gmm_heatmap_html",
}

# Where the generated tables stand in docs/configuration.md.
BEGIN = "<!-- generated from rl_insight/config_model.py: begin -->"
END = "<!-- generated from rl_insight/config_model.py: end -->"


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a configuration file."""
    schema = _object("Configuration of RL-Insight")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    for name, key in KEYS.items():
        *sections, last = name.split(".")
        place, path = schema, ""
        for section in sections:
            path = f"{path}.{section}" if path else section
            place = place["properties"].setdefault(section, _object(SECTIONS[path]))
        place["properties"][last] = _leaf(key)
    return schema


def markdown_tables() -> str:
    """One table of keys for each part of the configuration."""
    lines: list[str] = []
    for title, keys in _groups():
        lines += [f"### {title}", ""]
        lines += ["| key | flag | default | values | meaning |", "|---|---|---|---|---|"]
        for key in keys:
            flag = f"`{key.flag}`" if key.flag else ""
            default = f"`{_text(key.default)}`" if _text(key.default) else "none"
            lines.append(f"| `{key.name}` | {flag} | {default} | {key.type} | {key.description} |")
        lines.append("")
    return "\n".join(lines)


def yaml_text(values: Mapping[str, object] = SHIPPED) -> str:
    """A YAML file with every key, each commented; `values` replace defaults."""
    lines = [
        "# Every key that RL-Insight knows, with its default unless the comment names another.",
        "# Written by `python -m rl_insight.config_docs`; docs/configuration.md explains more.",
        "",
    ]
    open_sections: list[str] = []
    for name, key in KEYS.items():
        *sections, last = name.split(".")
        for depth, section in enumerate(sections):
            if open_sections[depth : depth + 1] != [section]:
                del open_sections[depth:]
                open_sections.append(section)
                if depth == 0:
                    lines.append("")
                lines.append(f"{'  ' * depth}{section}:")
        indent = "  " * len(sections)
        lines.append(f"{indent}# {plain(key.description)}")
        words = f"Values: {plain(key.type)}."
        if name in values and values[name] != key.default:
            words += f" Default: {_text(key.default) or 'none'}."
        lines.append(f"{indent}# {words}")
        value = values.get(name, key.default)
        lines.append(f"{indent}{last}: {'null' if value is None else json.dumps(value)}")
    return "\n".join(lines) + "\n"


def main(root: Path) -> None:
    """Write the generated files of the checkout at `root`."""
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (root / "workflow" / "schemas" / "config.schema.json").write_text(schema, "utf-8")
    (root / "config" / "config.yaml").write_text(yaml_text(), "utf-8")
    page = root / "docs" / "configuration.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{markdown_tables()}{END}{after}", "utf-8")


def _groups() -> Iterator[tuple[str, list[Key]]]:
    """Title and keys of each top-level part, in the order of the model."""
    parts: dict[str, list[Key]] = {}
    for name, key in KEYS.items():
        parts.setdefault(name.partition(".")[0], []).append(key)
    for part, keys in parts.items():
        title = SECTIONS.get(part, "What is drawn.").rstrip(".")
        yield (f"`{part}`: {title[0].lower()}{title[1:]}", keys)


def _object(description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": {},
    }


def _leaf(key: Key) -> dict[str, Any]:
    schema = dict(key.kind.schema)
    # Null in a file means the default, whatever the key.
    schema = {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}  # type: ignore[misc]
    return {"description": plain(key.description), "default": key.default, **schema}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or value == [] else str(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
