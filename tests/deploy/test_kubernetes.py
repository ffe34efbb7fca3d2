"""The sidecar example."""

import pathlib
import re
import tomllib

import pytest
import yaml
from files import DEPLOY, checked
from manifests import (
    assert_can_write_only,
    assert_hardened,
    assert_probed,
    documents,
    size,
    the,
    tidegate_container,
    validate,
    volume_size,
)

SIDECAR = DEPLOY / "kubernetes" / "sidecar.yaml"


@pytest.fixture(scope="module")
def sidecar() -> list[dict]:
    return documents(SIDECAR.read_text())


def test_the_manifests_are_valid(sidecar: list[dict]):
    validate(sidecar)


def test_tidegate_accepts_its_configuration(sidecar: list[dict], tmp_path: pathlib.Path):
    config = tmp_path / "proxy.toml"
    config.write_text(the(sidecar, "ConfigMap")["data"]["proxy.toml"])
    shown = checked(config, {}, "--changed")
    assert '"127.0.0.1:8080"' in shown, "the proxy is reachable from outside the pod"
    assert '"embedded:/data"' in shown


def test_the_pod_is_hardened_and_probed(sidecar: list[dict]):
    deployment = the(sidecar, "Deployment")
    assert_hardened(deployment)
    container = tidegate_container(deployment)
    assert_probed(container)
    assert_can_write_only(container, "/data")
    assert container["restartPolicy"] == "Always", "without it, an init container blocks the application"


def test_the_store_fits_its_volume(sidecar: list[dict]):
    store = tomllib.loads(the(sidecar, "ConfigMap")["data"]["proxy.toml"])["store"]
    assert 2 * size(store["max_size"]) < volume_size(the(sidecar, "Deployment"))


def test_the_application_uses_the_sidecar(sidecar: list[dict]):
    [application] = the(sidecar, "Deployment")["spec"]["template"]["spec"]["containers"]
    environment = {variable["name"]: variable["value"] for variable in application["env"]}
    assert environment["OPENAI_BASE_URL"] == "http://127.0.0.1:8080/v1"


def test_the_ten_lines_of_the_documentation_are_a_valid_pod():
    [block] = re.findall(r"^```yaml\n(.*?)^```$", (DEPLOY / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) == 10
    spec = {**yaml.safe_load(block), "containers": [{"name": "application", "image": "my-agent"}]}
    validate([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "my-agent"}, "spec": spec}])
