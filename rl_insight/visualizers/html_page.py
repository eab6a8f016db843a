"""What all pages have in common: templates, assets, and data inside a script element."""

import json
from pathlib import Path

import jinja2
from markupsafe import Markup  # part of Jinja

Json = dict[str, object]

_HERE = Path(__file__).parent
# Inside a script element these would end it, or the line, for a parser of HTML or of scripts.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def rendered(template: str, **values: object) -> str:
    """The file `template` of `templates/`, filled in; values are escaped unless they are Markup."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


def embedded(data: Json) -> Markup:
    """`data` as JSON that is safe between the tags of a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


def asset(name: str) -> Markup:
    """A file of `assets/`: our own, not input, so it goes into the page as it is."""
    return Markup((_HERE / "assets" / name).read_text(encoding="utf-8"))
