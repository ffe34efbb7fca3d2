"""The Grafana dashboard as a file: it can be imported anywhere, and nothing of it is in the way of something else."""

import re

import dashboard


def test_it_names_no_data_source_of_its_own():
    found = re.findall(r'"uid": "([^"]*)"', dashboard.FILE.read_text())
    assert set(found) == {"tidegate", "${datasource}"}
    assert "__inputs" not in dashboard.load()


def test_its_variables_are_the_ones_that_it_uses():
    variables = [variable["name"] for variable in dashboard.load()["templating"]["list"]]
    assert variables == ["datasource", *dashboard.CHOICES]
    expressions = [target["expr"] for panel in dashboard.panels() for target in panel["targets"]]
    for expression in expressions:
        # A selector that a choice does not narrow down would show another process's figures.
        assert expression.count('job=~"$job",instance=~"$instance"') == expression.count("{"), expression
    for name in dashboard.CHOICES:
        assert any(f'=~"${name}"' in expression for expression in expressions), name


def test_every_panel_explains_itself_and_is_there_once():
    panels = dashboard.panels()
    assert all(panel["description"].endswith(".") for panel in panels)
    for unique in ("id", "title"):
        values = [panel[unique] for panel in dashboard.load()["panels"]]
        assert len(set(values)) == len(values), unique


def test_no_panel_covers_another():
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.load()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
