"""`rl_timeline.png`: the timeline as one picture, for a report or a chat."""

from collections.abc import Mapping
from pathlib import Path

from rl_insight.files import replacing

WIDTH = "timeline.visualizer.width"
SCALE = "timeline.visualizer.scale"


class TimelinePng:
    """The `png` visualizer: data, layout and drawing lie in the `timeline_*` modules."""

    name = "png"
    preset = "timeline"
    output = "rl_timeline.png"
    tables = ("sources", "lanes", "spans", "breakdown")
    options = (WIDTH, SCALE)

    def render(self, tables: Path, output: Path, options: Mapping[str, object]) -> None:
        """Draw the tables in `tables` to `output`, exactly width × scale pixels wide."""
        # Whoever only asks for the name of the output must not wait for matplotlib.
        from rl_insight.visualizers import timeline_data, timeline_picture

        width = int(float(str(options.get(WIDTH, 2000))))
        scale = float(str(options.get(SCALE, 2)))
        content = timeline_picture.picture(timeline_data.load(tables), width, scale)
        with replacing(output) as temporary:
            Path(temporary).write_bytes(content)


VISUALIZER = TimelinePng()
