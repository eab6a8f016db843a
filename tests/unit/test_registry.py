"""Features are found by name, ours and those of other packages, and loaded only when used."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rl_insight.errors import PluginError
from rl_insight.parsers import PARSERS
from rl_insight.registry import Registry
from rl_insight.visualizers import VISUALIZERS

GROUP = "rl_insight.test_features"

Outside = Callable[[str, str], None]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """Install a package whose one module has this source and adds these entry points."""

    def install(source: str, entries: str) -> None:
        (tmp_path / "outside_features.py").write_text(source)
        info = tmp_path / "outside_features-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "outside_features", raising=False)

    return install


def registry() -> Registry[object]:
    found: Registry[object] = Registry("cluster parser", GROUP)
    return found


def test_a_feature_is_found_under_its_name() -> None:
    ours = registry()
    feature = object()
    ours.register("torch", feature)
    assert ours.get("torch") is feature
    assert ours.names() == ["torch"]


def test_a_feature_named_by_its_place_is_imported_on_first_use_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_feature.py").write_text("PARSER = object()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ours = registry()
    ours.register("lazy", "lazy_feature:PARSER")
    assert ours.names() == ["lazy"]
    assert "lazy_feature" not in sys.modules

    first = ours.get("lazy")

    assert first is sys.modules["lazy_feature"].PARSER
    assert ours.get("lazy") is first


def test_a_dependency_that_is_not_installed_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needy_feature.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    ours = registry()
    ours.register("needy", "needy_feature:PARSER")
    with pytest.raises(
        PluginError, match=r"cluster parser 'needy' cannot be loaded: .*no_such_library"
    ):
        ours.get("needy")


def test_a_misspelt_name_is_refused_with_the_nearest_and_all_known_names() -> None:
    ours = registry()
    ours.register("torch", object())
    ours.register("mstx", object())
    with pytest.raises(PluginError) as refused:
        ours.get("torhc")
    assert str(refused.value) == (
        "Unsupported cluster parser: torhc; did you mean 'torch'? (known: torch, mstx)"
    )
    assert refused.value.exit_code == 2


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    ours = registry()
    ours.register("torch", object())
    with pytest.raises(PluginError) as refused:
        ours.get("zzz")
    assert str(refused.value) == "Unsupported cluster parser: zzz (known: torch)"


def test_another_package_adds_a_feature_through_an_entry_point(outside: Outside) -> None:
    outside("PARSER = ['theirs']\n", "theirs = outside_features:PARSER")
    ours = registry()
    ours.register("torch", object())
    assert ours.names() == ["torch", "theirs"]
    assert ours.get("theirs") == ["theirs"]
    assert ours.get("theirs") is ours.get("theirs")


def test_another_package_cannot_take_a_name_of_ours(outside: Outside) -> None:
    outside("PARSER = 'theirs'\n", "torch = outside_features:PARSER")
    ours = registry()
    feature = object()
    ours.register("torch", feature)
    assert ours.get("torch") is feature
    assert ours.names() == ["torch"]


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("raise RuntimeError('half installed')\n", "broken = outside_features:PARSER"),
        ("", "broken = outside_features:PARSER"),
        ("import no_such_library\n", "broken = outside_features:PARSER"),
        ("", "broken = no_such_module_at_all:PARSER"),
    ],
)
def test_a_feature_of_another_package_that_does_not_load_is_named_and_costs_no_other(
    outside: Outside, source: str, entry: str
) -> None:
    outside(source, entry)
    ours = registry()
    feature = object()
    ours.register("torch", feature)
    with pytest.raises(
        PluginError, match=r"cluster parser 'broken' \(.*:PARSER\) cannot be loaded"
    ):
        ours.get("broken")
    assert ours.get("torch") is feature


def test_our_own_names_are_registered_without_importing_what_they_name() -> None:
    assert "torch" in PARSERS.names()
    assert {"html", "png"} <= set(VISUALIZERS.names())
