"""Which colour stands for how many tokens."""

import matplotlib
import numpy as np
import pytest

from rl_insight.visualizers.heatmap_colours import ColourMap, colour_map, lightness, scale


def brightness(colour: np.ndarray) -> float:
    """Perceived brightness by the older weights of television (ITU-R BT.601)."""
    red, green, blue = (float(channel) for channel in colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def ends(found: ColourMap) -> tuple[float, float]:
    return brightness(found.colours[0]), brightness(found.colours[-1])


@pytest.mark.parametrize("name", ["viridis", "gray", "Greys", "Blues", "magma", "cividis", "hot"])
def test_darker_is_more(name: str) -> None:
    few, many = ends(colour_map(name))

    assert many < few
    assert colour_map(name).note is None


@pytest.mark.parametrize("name", ["viridis_r", "gray_r", "Greys_r", "Blues_r", "magma_r"])
def test_a_name_that_ends_in_r_turns_it_round(name: str) -> None:
    few, many = ends(colour_map(name))

    assert many > few
    assert np.array_equal(colour_map(name).colours, colour_map(name[:-2]).colours[::-1])


@pytest.mark.parametrize("name", ["coolwarm", "RdBu", "seismic", "twilight", "hsv", "jet"])
def test_a_map_without_a_darker_end_stays_as_it_is_and_that_is_said(name: str) -> None:
    found = colour_map(name)

    first = np.round(np.array(matplotlib.colormaps[name](0.0)[:3]) * 255)
    assert found.colours[0].tolist() == first.tolist()
    assert found.note == f"the colour map {name} has no darker end: drawn as it is"
    assert np.array_equal(colour_map(f"{name}_r").colours, found.colours[::-1])


@pytest.mark.parametrize("name", ["Blue", "", "_r", "$x$", "viridis_r_r", "a" * 500])
def test_an_unknown_map_is_viridis_and_that_is_said(name: str) -> None:
    found = colour_map(name)

    assert np.array_equal(found.colours, colour_map("viridis").colours)
    assert found.note is not None
    assert found.note.startswith("no colour map is called")


def test_the_nearest_name_is_proposed() -> None:
    assert "did you mean viridis?" in str(colour_map("virdis").note)


def test_lightness_is_that_of_the_standard() -> None:
    # CIE L* of sRGB grey 119 is 50; that of pure red, green and blue is tabulated everywhere.
    colours = np.array([[0, 0, 0], [255, 255, 255], [119, 119, 119], [255, 0, 0], [0, 0, 255]])

    assert lightness(colours) == pytest.approx([0, 100, 50.03, 53.24, 32.30], abs=0.02)


def test_the_scale_begins_at_zero_and_ends_at_the_fullest_cell() -> None:
    found = scale(np.array([[3.0, np.nan], [12.0, 0.0]]))

    assert (found.top, found.above, found.most) == (12, 0, 12)
    assert found.index(np.array([0.0, 6.0, 12.0])).tolist() == [0, 128, 255]


def test_few_very_full_cells_end_the_scale_below_them_but_not_below_four_times_the_mean() -> None:
    cells = np.full((40, 64), 100.0)
    cells[0, 0] = 50_000

    found = scale(cells)

    mean = (39 * 100 + (63 * 100 + 50_000) / 64) / 40
    assert found.top == pytest.approx(4 * mean)
    assert found.above == 1
    assert found.index(cells)[0, 0] == 255
    assert found.index(cells)[1, 0] < 64


def test_an_expert_at_ten_times_the_mean_is_darker_than_those_at_one_and_a_half() -> None:
    # 3 steps, 8 ranks, 12 layers: of 36,864 cells 8 are hot, far fewer than one in a thousand.
    cells = np.where(np.arange(128) % 2, 60.0, 140.0) * np.ones((288, 1))
    cells[:8, 77] = 1_010

    found = scale(cells)

    assert (found.top, found.above) == (1_010, 0)
    assert found.index(np.array([140.0, 505.0, 1_010.0])).tolist() == [35, 128, 255]


def test_an_empty_layer_does_not_lower_the_mean_of_the_layers() -> None:
    cells = np.zeros((100, 32))
    cells[0] = 10
    cells[0, 3] = 100  # 7.8 times the mean of its layer

    assert scale(cells).top == 100


def test_one_drowning_expert_in_each_layer_does_not_whiten_the_others() -> None:
    cells = np.full((48, 128), 100.0)
    cells[:, 7] = 100_000  # 0.8 % of the cells; the mean is 880.5

    found = scale(cells)

    mean = (127 * 100 + 100_000) / 128
    assert found.top == pytest.approx(10 * mean)
    assert found.above == 48


def test_many_full_cells_are_no_exception() -> None:
    cells = np.zeros((10, 10))
    cells[:, 0] = 1_000

    assert scale(cells).top == 1_000


@pytest.mark.parametrize("cells", [np.zeros((2, 2)), np.full((2, 2), np.nan), np.zeros((0, 3))])
def test_a_scale_without_tokens_is_no_division_by_zero(cells: np.ndarray) -> None:
    found = scale(cells)

    assert (found.above, found.most) == (0, 0)
    assert found.top > 0
