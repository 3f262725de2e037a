"""Parses the PromQL of the dashboard and of the alerts with the grammar of Prometheus.

    python tools/promql.py deploy/helm/servegrid/dashboards/servegrid.json deploy/helm/servegrid/alerts/alerts.yaml

Needs promql-parser and PyYAML. That the metrics and labels exist is checked by the tests of sweep/telemetry.
"""

import json
import sys

import promql_parser
import yaml

# What Grafana puts in place of its variables.
VARIABLES = {"$__rate_interval": "1m", "$queue_namespace": ".*", "$sweep": ".*"}


def expressions(path):
    """Yields where an expression is, and the expression."""
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            for panel in json.load(file)["panels"]:
                for target in panel.get("targets", []):
                    yield panel["title"], target["expr"]
            return
        for group in yaml.safe_load(file)["groups"]:
            for rule in group["rules"]:
                missing = {"alert", "expr", "labels", "annotations"} - set(rule)
                if missing or "severity" not in rule["labels"] or "summary" not in rule["annotations"]:
                    raise SystemExit(f"{path}: {rule}: incomplete")
                yield rule["alert"], rule["expr"]


def main():
    wrong = found = 0
    for path in sys.argv[1:]:
        for where, expression in expressions(path):
            found += 1
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            try:
                promql_parser.parse(expression)
            except Exception as error:  # the parser has no class of its own for what it refuses
                wrong += 1
                print(f"{path}: {where}: {error}\n  {expression}")
            if "$" in expression:
                wrong += 1
                print(f"{path}: {where}: an unknown variable\n  {expression}")
    if wrong or not found:
        raise SystemExit(f"{wrong} of {found} expressions are wrong")
    print(f"{found} expressions of PromQL parsed")


if __name__ == "__main__":
    main()
