"""Validates Kubernetes manifests against their schemas, and checks requirements of every Tidegate pod."""

import re
from typing import Any

import kubernetes_validate
import yaml

# The oldest supported version, and the newest with schemas.
VERSIONS = ("1.30", "1.37")
# Kinds of the Prometheus operator, for which Kubernetes has no schema.
CUSTOM = {"ServiceMonitor"}


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def validate(manifests: list[dict[str, Any]]) -> None:
    for manifest in manifests:
        if manifest["kind"] not in CUSTOM:
            for version in VERSIONS:
                # Strict: an unknown key is an error.
                kubernetes_validate.validate(manifest, version, strict=True)


def of_kind(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def the(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = of_kind(manifests, kind)
    return found


def tidegate_container(deployment: dict[str, Any]) -> dict[str, Any]:
    pod = deployment["spec"]["template"]["spec"]
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    [found] = [container for container in containers if container["name"] == "tidegate"]
    return found


def assert_hardened(deployment: dict[str, Any]) -> None:
    """Asserts the restricted profile of the pod security standards, and a read-only root."""
    pod = deployment["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    container = tidegate_container(deployment)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def assert_probed(container: dict[str, Any]) -> None:
    """Asserts that the probes use the admin port, which the container has."""
    assert {port["name"]: port["containerPort"] for port in container["ports"]}["admin"] == 9090
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/readyz", "port": "admin"}


def assert_can_write_only(container: dict[str, Any], path: str) -> None:
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == [path]


def size(text: str) -> int:
    """The bytes of `400MiB` or `1Gi`."""
    number, unit = re.fullmatch(r"(\d+)([KMGT])iB?", text).groups()
    return int(number) << 10 * (1 + "KMGT".index(unit))


def volume_size(deployment: dict[str, Any]) -> int:
    """The most that the pod's directory for conversations takes before it is evicted."""
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    [volume] = [volume["emptyDir"] for volume in volumes if "emptyDir" in volume]
    return size(volume["sizeLimit"])
