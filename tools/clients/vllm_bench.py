"""`vllm bench serve` of a vLLM whose sources lie in a folder; tools/clients.py runs it.

  vllm_bench.py FOLDER [flags of vllm bench serve]

The engine, PyTorch and CUDA are several GB, and none of it has to do with requests over HTTP: modules that stand in for them let
the client be imported. Nothing of them is called. `tools/clients.py --only vllm` installs what is left: the packages that the client
imports, and the sources out of vLLM's package (0.3 GB to download).
"""
import argparse
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from unittest.mock import MagicMock

STOOD_IN = """torch vllm.config vllm.distributed vllm.engine vllm.inputs vllm.lora vllm.multimodal vllm.platforms
vllm.transformers_utils.config vllm.transformers_utils.processors vllm.utils.torch_utils vllm.v1""".split()


class StandIn(types.ModuleType):
    """A module that has everything: classes for names that look like it, and mocks."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda *_, **__: None}) if name[0].isupper() else MagicMock(name=name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if any(name == module or name.startswith(module + ".") for module in STOOD_IN):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


def version(name, known=importlib.metadata.version):
    """What vLLM looks up of PyTorch; transformers must not find it."""
    if name == "torch" and sys._getframe(1).f_globals["__name__"].startswith("vllm"):
        return "2.14.0"
    return known(name)


def main():
    importlib.metadata.version = version
    sys.meta_path.insert(0, Finder())
    vllm = sys.modules["vllm"] = types.ModuleType("vllm")  # whose own beginning starts the engine
    vllm.__path__ = [f"{sys.argv.pop(1)}/vllm"]
    from vllm.benchmarks.serve import add_cli_args
    from vllm.benchmarks.serve import main as bench

    parser = argparse.ArgumentParser()
    add_cli_args(parser)
    bench(parser.parse_args())


if __name__ == "__main__":
    main()
