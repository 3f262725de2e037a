#!/usr/bin/env python3
"""Reads graph deployments with Dynamo's own parsers: frontend, planner, and what its workers add to their engines.

    REFERENCE/bin/python tools/deploycheck.py results/deploy/testdata/*.txt FOLDER/dynamo.yaml...

A .txt file is a case of the tests of results/deploy, with all files of a deployment. The flags of the engines themselves are
checked by these tests, against what tools/deployflags.py found.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import yaml

from deployflags import load, stub_engines


def graph_of(path):
    text = Path(path).read_text()
    if path.endswith(".txt"):
        text = re.search(r"^-- dynamo\.yaml --\n(.*?)^-- ", text, re.M | re.S).group(1)
    return yaml.safe_load(text)


def check(graph):
    from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
    from dynamo.frontend.frontend_args import FrontendArgGroup, FrontendConfig
    from dynamo.planner.config.planner_config import PlannerConfig

    services = graph["spec"]["services"]
    for name, service in services.items():
        container = service["extraPodSpec"]["mainContainer"]
        module, args = container["command"][-1], container["args"]
        parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
        if module == "dynamo.frontend":
            FrontendArgGroup().add_arguments(parser)
            FrontendConfig.from_cli_args(parser.parse_args(args)).validate()
        elif module == "dynamo.planner":
            written = json.loads(args[args.index("--config") + 1])
            config = PlannerConfig.model_validate(written)
            wrong = {k: v for k, v in written.items() if k not in ("scheduling", "aic_perf_model") and getattr(config, k) != v}
            assert not wrong, f"the planner reads {wrong} otherwise"
        else:
            DynamoRuntimeArgGroup().add_arguments(parser)
            group = {"dynamo.vllm": "DynamoVllmArgGroup", "dynamo.sglang": "DynamoSGLangArgGroup", "dynamo.trtllm": "DynamoTrtllmArgGroup"}[module]
            load(site_packages(), module.split(".")[1], group)().add_arguments(parser)
            _, rest = parser.parse_known_args(args)
            assert module != "dynamo.trtllm" or not rest, f"{name}: {module} does not know {rest}"


def site_packages():
    import dynamo.common

    return str(Path(dynamo.common.__file__).parents[2])


def main():
    stub_engines()
    for path in sys.argv[1:]:
        try:
            check(graph_of(path))
        except Exception as e:
            sys.exit(f"{path}: {type(e).__name__}: {e}")
    print(f"{len(sys.argv) - 1} graph deployments read by Dynamo's parsers")


if __name__ == "__main__":
    main()
