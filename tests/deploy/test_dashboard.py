"""The Grafana dashboard file can be imported anywhere, and its panels do not overlap."""

import re

import dashboard


def test_no_data_source_is_hard_coded():
    found = re.findall(r'"uid": "([^"]*)"', dashboard.FILE.read_text())
    assert set(found) == {"tidegate", "${datasource}"}
    assert "__inputs" not in dashboard.load()


def test_every_variable_is_used():
    variables = [variable["name"] for variable in dashboard.load()["templating"]["list"]]
    assert variables == ["datasource", *dashboard.CHOICES]
    expressions = [target["expr"] for panel in dashboard.panels() for target in panel["targets"]]
    for expression in expressions:
        # A selector without these variables would include other processes.
        assert expression.count('job=~"$job",instance=~"$instance"') == expression.count("{"), expression
    for name in dashboard.CHOICES:
        assert any(f'=~"${name}"' in expression for expression in expressions), name


def test_every_panel_has_a_description_and_is_unique():
    panels = dashboard.panels()
    assert all(panel["description"].endswith(".") for panel in panels)
    for unique in ("id", "title"):
        values = [panel[unique] for panel in dashboard.load()["panels"]]
        assert len(set(values)) == len(values), unique


def test_no_panels_overlap():
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
