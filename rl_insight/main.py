"""The command line: the only place that prints errors and picks exit codes."""

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from rl_insight import __version__
from rl_insight.commandline import Arguments, parse
from rl_insight.config import KEYS, Config, check_names, get, output_folder, parse_names, resolve
from rl_insight.config_values import nearest
from rl_insight.errors import CacheError, ConfigError, RLInsightError, UsageError
from rl_insight.plain_text import shown


def _preprocess(words: Sequence[str]) -> int:
    from rl_insight.pipeline.preprocess_command import command

    return command(words)


def _check(words: Sequence[str]) -> int:
    from rl_insight.pipeline.check_command import command

    return command(words)


def _watch(words: Sequence[str]) -> int:
    from rl_insight.pipeline.watch_command import HELP, path_and_words, watch

    arguments = parse(["output.live=true", *path_and_words(words)])
    if arguments.action == "help":
        print(HELP, end="")
        return 0
    config = _resolved(arguments)
    if config.input.path is None or arguments.dry_run or arguments.unlock:
        raise UsageError("rl-insight watch needs a folder, and draws; see rl-insight watch --help")
    root, output = Path(config.input.path), output_folder(config)
    return watch(root, output, config.input.settle, lambda: _drawn(config, arguments))


# What the first word may be, besides the flags and keys of a run: sub-commands, each a function
# of the words that follow it.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "check": _check,
    "preprocess": _preprocess,
    "watch": _watch,
}

_INTERRUPTED = 130

# A page that holds plotly.js takes somewhat less.
_PAGE_BYTES = 8_000_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: of this process) and give the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show must not end the run.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if words and words[0] in COMMANDS:
            return COMMANDS[words[0]](words[1:])
        return _run(parse(words))
    except RLInsightError as error:
        _say_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say_error("interrupted; what was read so far is kept, the same command goes on from there")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone away, as `head` does; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(arguments: Arguments) -> int:
    if arguments.action == "help":
        from rl_insight.help import help_text

        print(help_text(), end="")
        return 0
    if arguments.action == "version":
        print(f"rl-insight {__version__}")
        return 0
    return _drawn(_resolved(arguments), arguments)


def _resolved(arguments: Arguments) -> Config:
    return resolve(arguments.settings, arguments.config_path, arguments.preset)


def _drawn(config: Config, arguments: Arguments) -> int:
    """As `_draw`; what nobody expected is told and logged here, and so ends no watch."""
    try:
        return _draw(config, arguments)
    except (RLInsightError, BrokenPipeError):
        raise
    except Exception as error:
        return _unexpected(error, output_folder(config))


def _draw(config: Config, arguments: Arguments) -> int:
    """The run itself: Snakemake does the work, then its tables say how it went."""
    from rl_insight.pipeline.bundled import check_profile
    from rl_insight.pipeline.run import RunRequest, run

    _check_names(config)
    if arguments.profile is not None:
        check_profile(arguments.profile)
    if sys.stderr.isatty():
        # A large folder takes a while to list; what comes next is written over it.
        print("looking at the input\r", end="", file=sys.stderr, flush=True)
    outcome = run(
        RunRequest(
            config=config,
            cores=arguments.cores,
            profile=arguments.profile,
            dry_run=arguments.dry_run,
            unlock=arguments.unlock,
            snakemake_args=arguments.snakemake_args,
        )
    )
    if outcome.exit_code == 0 and (arguments.dry_run or arguments.unlock):
        return 0

    from rl_insight.pipeline.merge_options import filters_of
    from rl_insight.pipeline.summary import closing, exit_code, lines, summarise

    if outcome.exit_code == UsageError.exit_code:
        # So ends Snakemake when it does not know an option; its own message says which.
        raise UsageError(f"Snakemake does not understand {' '.join(arguments.snakemake_args)!r}")
    if outcome.exit_code:
        _say_error(f"the run failed; Snakemake's own log is below {outcome.output}/.snakemake/log")
        if _is_full(outcome.output):
            _say_error(
                "the disk is full: make room, or choose another output.path, and run it again; "
                "what was read so far is kept"
            )
        return 1
    try:
        chosen = [get(config, f"{preset}.parser.role") for preset in outcome.presets]
        roles = [name for names in chosen if names for name in parse_names(names)]
        values = {key: get(config, key) for key in KEYS}
        filters = {preset: filters_of(values, preset) for preset in outcome.presets}
        parsers = _parsers(outcome.presets)
        summary = summarise(outcome.output, parsers, outcome.presets, roles, filters)
    except FileNotFoundError as error:
        if not arguments.snakemake_args:
            missing = f"the run ended well, but {error.filename} is missing"
            raise CacheError(f"{missing}: run it again") from error
        # Snakemake was asked for something else than the pictures, after --.
        print("\n".join(closing(outcome)))
        code = 0
    else:
        print("\n".join(lines(summary, outcome)))
        code = exit_code(summary, config.run.strict)
    if outcome.report_code:
        _say_error("the run ended well, but Snakemake could not make its report: see above")
        return 1
    return code


def _is_full(folder: Path) -> bool:
    """Whether the disk of `folder` has no room for one page."""
    try:
        return shutil.disk_usage(folder).free < _PAGE_BYTES
    except OSError:
        return False


def _parsers(presets: Collection[str]) -> list[str]:
    """The parsers of what this run draws; the output folder may hold other runs' tables too."""
    from rl_insight.parsers import PARSERS

    return [name for name in PARSERS.names() if PARSERS.get(name).preset in presets]


def _check_names(config: Config) -> None:
    """Check names that only the registries know, before any work starts."""
    from rl_insight.parsers import PARSERS
    from rl_insight.visualizers import VISUALIZERS

    for preset, other in (("timeline", "heatmap"), ("heatmap", "timeline")):
        for part, registered in (("parser", PARSERS.names()), ("visualizer", VISUALIZERS.names())):
            key = f"{preset}.{part}.type"
            # A name says to which preset it belongs only when its module is loaded, which for a
            # visualizer takes a second; the documented ones of the other preset are known.
            names = [n for n in registered if n not in KEYS[f"{other}.{part}.type"].choices]
            if "auto" in KEYS[key].choices:
                names.insert(0, "auto")
            chosen = get(config, key) != KEYS[key].default
            if preset == config.preset or (config.preset == "all" and chosen):
                check_names(config, {key: names})
    _check_colours(config)


def _check_colours(config: Config) -> None:
    key = "heatmap.visualizer.cmap"
    if config.preset == "timeline" or get(config, key) == KEYS[key].default:
        return  # to load matplotlib takes a while
    import matplotlib

    names = list(matplotlib.colormaps)
    # The pictures turn any map round whose name they are given with _r.
    name = str(get(config, key))
    if name not in names:
        near = nearest(name, names)
        hint = f"; did you mean {near}?" if near else ""
        raise ConfigError(f"{key}: matplotlib has no colour map {shown(name)}{hint}")


def _unexpected(error: Exception, output: Path) -> int:
    """One sentence for what should not have happened; the traceback goes to a log."""
    from rl_insight.pipeline import layout
    from rl_insight.pipeline.places import leads_out

    if os.environ.get("RL_INSIGHT_DEBUG") == "1":
        traceback.print_exception(error)
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        what = f"it cannot go on: {error.strerror}{where}"
    else:
        what = f"unexpected {type(error).__name__}: {error}"
    log = output / layout.LOGS / "rl-insight.log"
    try:
        if leads_out(output, log):
            raise OSError("a link leads out of the output folder")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{datetime.now().astimezone().isoformat()} rl-insight {__version__}\n")
            traceback.print_exception(error, file=file)
        _say_error(f"{what} (details: {log})")
    except OSError:
        _say_error(f"{what} (details: run it again with RL_INSIGHT_DEBUG=1)")
    return 1


def _say_error(text: str) -> None:
    from rl_insight.pipeline.terminal import printable

    sys.stdout.flush()
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{clear}error: {printable(text, 2_000)}", file=sys.stderr)


def command() -> NoReturn:
    """What the console script and `python -m rl_insight.main` run: `main` in a process of its own.

    Without pandas it starts half a second sooner; somebody else's process may need it after `main`.
    It ends at once, for all is written: now and then a thread of Arrow was still at work while the
    interpreter went down, which aborted the process and made exit code 134 of a run that was good.
    """
    from rl_insight import without_pandas

    without_pandas.keep_out()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Nobody can be told: what was said last is lost.
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    command()
