"""Fixtures of the black-box suites, and the servers' output with each failure."""

import pathlib

import pytest

from harness import servers
from harness.servers import Server, Sides


@pytest.fixture(scope="session")
def mock(tmp_path_factory: pytest.TempPathFactory):
    with servers.mock_upstream(tmp_path_factory.mktemp("mock")) as server:
        yield server


@pytest.fixture(scope="session", params=servers.KINDS, ids=str)
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """A mock upstream of each kind, directly and through Tidegate."""
    with servers.sides_of(request.param, tmp_path_factory.mktemp("sides")) as sides:
        yield sides


@pytest.fixture(scope="session")
def llm_sides(tmp_path_factory: pytest.TempPathFactory):
    """The real small LLM, directly and through Tidegate."""
    directory = tmp_path_factory.mktemp("llm")
    with servers.small_llm(directory) as direct, servers.tidegate(direct, directory) as through:
        yield Sides(direct, through, direct.origin)


@pytest.fixture
def fresh_sides(tmp_path: pathlib.Path):
    """Servers that no other test uses, for tests that check connections or memory."""
    with servers.mock_upstream(tmp_path) as direct, servers.tidegate(direct, tmp_path) as through:
        yield Sides(direct, through, direct.origin)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    item.stash[LOG_STARTS] = {process.log: process.log.stat().st_size for process in servers.ALIVE}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.failed:
        for process in servers.ALIVE:
            with process.log.open("rb") as log:
                log.seek(item.stash[LOG_STARTS].get(process.log, 0))
                report.sections.append((f"output of {process.name}", log.read().decode(errors="replace")))
    return report


LOG_STARTS = pytest.StashKey[dict[pathlib.Path, int]]()
