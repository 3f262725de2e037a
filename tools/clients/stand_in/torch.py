"""A stand-in for what guidellm uses of PyTorch: one class that iterates over a data set.

PyTorch comes with several GB of CUDA libraries, and none of them has to do with requests over HTTP.
"""
import sys
import types


class Tensor:
    """Never made; libraries ask whether a value is one."""


class Generator:
    def manual_seed(self, seed):
        return self


class IterableDataset:
    def __class_getitem__(cls, item):
        return cls


class DataLoader:
    def __class_getitem__(cls, item):
        return cls

    def __init__(self, dataset, **_):
        self.dataset = dataset

    def __iter__(self):
        return iter(self.dataset)


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    return made


nn = module("torch.nn", Module=type("Module", (), {}))
data = module(
    "torch.utils.data",
    DataLoader=DataLoader,
    IterableDataset=IterableDataset,
    get_worker_info=lambda: None,
    dataset=module("torch.utils.data.dataset", IterableDataset=IterableDataset),
    dataloader=module("torch.utils.data.dataloader", DataLoader=DataLoader),
)
utils = module("torch.utils", data=data)
