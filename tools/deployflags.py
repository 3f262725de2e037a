#!/usr/bin/env python3
"""Lists the flags that serving engines declare, for the tests of results/deploy.

    python3 tools/deployflags.py vllm WHEEL... sglang WHEEL... dynamo SITE_PACKAGES > results/deploy/testdata/flags.json

A wheel comes from `pip download --no-deps vllm==0.33.0`; it is read and not imported, since importing it takes a GPU's
software. Dynamo is imported: its package needs none. The result names for each release its flags, the kind of value that each
takes (int, float, text, json, or switch) and, where they are fixed, the values.
"""

import argparse
import ast
import json
import re
import sys
import zipfile


def sources(wheel, wanted):
    """The syntax trees of a wheel's files whose names match."""
    with zipfile.ZipFile(wheel) as z:
        return [ast.parse(z.read(name)) for name in z.namelist() if re.fullmatch(wanted, name)]


def release(wheel):
    return re.search(r"-(\d+\.\d+\.\d+)", wheel).group(1)


def constants(trees):
    """Names of literal types, lists and classes at the top of files."""
    found = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, node.value)
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, node)
    return found


def literals(node, names):
    """The values of a Literal or a list of texts, or None when it is something else."""
    if isinstance(node, ast.Name) and node.id in names:
        return literals(names[node.id], names)
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "Literal":
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    elif isinstance(node, ast.List):
        parts = node.elts
    else:
        return None
    out = []
    for part in parts:
        if isinstance(part, ast.Constant):
            out.append(part.value)
        elif (inner := literals(part, names)) is not None:
            out += inner
        else:
            return None
    return out


def kind(annotation, names):
    """The kind of value of a field, and its choices."""
    parts = [annotation]
    while any(isinstance(p, ast.BinOp) for p in parts):
        parts = [q for p in parts for q in ([p.left, p.right] if isinstance(p, ast.BinOp) else [p])]
    if isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") == "Optional":
        parts = [annotation.slice]
    parts = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is None)]
    words = [ast.unparse(p) for p in parts]
    if words == ["bool"]:
        return {"kind": "switch"}
    known = [c for p in parts if (c := literals(p, names)) is not None]  # beside text: those of vLLM itself
    if known and set(words) - {"str"} == {w for p, w in zip(parts, words) if literals(p, names) is not None}:
        return {"kind": "text", "choices": sum(known, [])}
    for word, name in (("int", "int"), ("float", "float"), ("str", "text")):
        if word in words:
            return {"kind": name}
    return {"kind": "json"}


def vllm_flags(wheel):
    names = constants(sources(wheel, r"vllm/(config/\w+|model_executor/layers/quantization/__init__|v1/attention/backends/registry)\.py"))
    (arguments,) = sources(wheel, r"vllm/engine/arg_utils\.py")
    names |= {k: v for k, v in constants([arguments]).items() if k not in names}
    classes, flags = {}, {}
    engine = next(n for n in arguments.body if isinstance(n, ast.ClassDef) and n.name == "EngineArgs")
    function = next(n for n in engine.body if isinstance(n, ast.FunctionDef) and n.name == "add_cli_args")
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "get_kwargs":
            classes[node.targets[0].id] = node.value.args[0].id
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"):
            continue
        found = {"kind": "text"}
        for sub in ast.walk(node):
            if isinstance(sub, ast.Subscript) and getattr(sub.value, "id", "") in classes:
                found = kind(field(names[classes[sub.value.id]], sub.slice.value, names), names)
        for k in node.keywords:
            if k.arg == "type" and isinstance(k.value, ast.Name) and k.value.id in ("int", "float"):
                found = {"kind": k.value.id}
            if k.arg == "action" and "Boolean" in ast.unparse(k.value):
                found = {"kind": "switch"}
            if k.arg == "choices" and (choices := literals(k.value, names)) is not None:
                found = {"kind": "text", "choices": choices}
        for flag in node.args:
            if flag.value.startswith("--"):
                flags[flag.value] = found
                if found["kind"] == "switch":
                    flags["--no-" + flag.value[2:]] = found
    return flags


def field(cls, name, names):
    """The annotation of a class's field, its own or inherited."""
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and node.target.id == name:
            return node.annotation
    for base in cls.bases:
        if getattr(base, "id", "") in names and (found := field(names[base.id], name, names)) is not None:
            return found
    return ast.Name("str")


def sglang_flags(wheel):
    trees = sources(wheel, r"sglang/srt/(server_args|arg_groups/(choices|argparse_actions|fields/\w+))\.py")
    names = constants(trees)
    flags = {}
    for cls in [n for t in trees for n in t.body if isinstance(n, ast.ClassDef)]:
        for node in cls.body:
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Subscript) and getattr(node.annotation.value, "id", "") == "A"):
                continue
            base, *details = node.annotation.slice.elts
            found, spellings = kind(base, names), ["--" + node.target.id.replace("_", "-")]
            for call in details:
                for k in getattr(call, "keywords", []):
                    if k.arg == "choices" and (choices := literals(k.value, names)) is not None:
                        found = {"kind": found["kind"], "choices": choices}
                    if k.arg == "cli_name":
                        spellings[0] = k.value.value
                    if k.arg == "aliases":
                        spellings += [e.value for e in k.value.elts]
                    if k.arg == "no_cli" and k.value.value:
                        spellings = []
            flags |= {s: found for s in spellings}
    for node in [n for t in trees for n in ast.walk(t)]:  # those that are kept for old command lines
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument" and node.args and isinstance(node.args[0], ast.Constant):
            switch = any(k.arg == "action" and "True" in ast.unparse(k.value) for k in node.keywords)
            flags.setdefault(node.args[0].value, {"kind": "switch" if switch else "text"})
    return flags


def actions(parser):
    """The flags of an argparse parser."""
    flags = {}
    for action in parser._actions:
        found = {"kind": {int: "int", float: "float"}.get(action.type, "text")}
        if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
            found = {"kind": "switch"}
        elif action.choices:
            found["choices"] = sorted(action.choices)
        flags |= {s: found for s in action.option_strings if s.startswith("--")}
    return flags


def dynamo_flags(site_packages):
    """The flags of Dynamo's frontend and of what its workers add to those of their engines, and the keys of its planner."""
    sys.path.insert(0, site_packages)
    stub_engines()
    from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
    from dynamo.frontend.frontend_args import FrontendArgGroup
    from dynamo.planner.config.planner_config import PlannerConfig

    out = {}
    for module, group in (("vllm", "DynamoVllmArgGroup"), ("sglang", "DynamoSGLangArgGroup"), ("trtllm", "DynamoTrtllmArgGroup")):
        parser = argparse.ArgumentParser(add_help=False)
        DynamoRuntimeArgGroup().add_arguments(parser)
        load(site_packages, module, group)().add_arguments(parser)
        out["dynamo." + module] = actions(parser)
    parser = argparse.ArgumentParser(add_help=False)
    FrontendArgGroup().add_arguments(parser)
    out["dynamo.frontend"] = actions(parser)
    out["dynamo.planner"] = {k: {"kind": "json"} for k in PlannerConfig.model_fields}
    return out


def stub_engines():
    """Stands in for TensorRT-LLM, whose defaults Dynamo's worker asks for."""
    import types

    fields = {k: types.SimpleNamespace(default=None) for k in ("max_batch_size", "max_num_tokens", "max_seq_len", "max_beam_width")}
    sys.modules["tensorrt_llm"] = types.ModuleType("tensorrt_llm")
    sys.modules["tensorrt_llm.llmapi"] = types.SimpleNamespace(BuildConfig=types.SimpleNamespace(model_fields=fields))


def load(site_packages, module, group):
    """A class of a worker's backend_args.py, without the package around it, which imports the engine."""
    import importlib.util
    import types

    package = "dynamo." + module
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [f"{site_packages}/dynamo/{module}"]
    sys.modules[package].__version__ = ""
    return getattr(importlib.import_module(package + ".backend_args"), group)


def main():
    out, server = {}, ""
    for word in sys.argv[1:]:
        if word in ("vllm", "sglang", "dynamo"):
            server = word
        elif server == "dynamo":
            from importlib.metadata import distributions

            version = next(d.version for d in distributions(path=[word]) if d.metadata["Name"] == "ai-dynamo")
            out |= {f"{name} {version}": flags for name, flags in dynamo_flags(word).items()}
        else:
            out[f"{server} {release(word)}"] = (vllm_flags if server == "vllm" else sglang_flags)(word)
    print("{")
    for i, (name, flags) in enumerate(out.items()):
        print(f' {json.dumps(name)}: {{')
        print(",\n".join(f"  {json.dumps(f)}: {json.dumps(v)}" for f, v in sorted(flags.items())))
        print(" }" + ("," if i + 1 < len(out) else ""))
    print("}")


if __name__ == "__main__":
    main()
