"""Which deployments the shipped tables cover: models, number formats and ways to spread them over GPUs."""
from dataclasses import dataclass, field

SYSTEMS = ("h100_sxm", "h200_sxm", "b200_sxm", "gb200", "b300_sxm", "gb300", "a100_sxm", "l40s", "rtx_pro_6000_server")
BACKENDS = ("vllm", "sglang", "trtllm")

# Backend versions that older releases of the reference simulator pin; only aiconfigurator 0.10 still prices them.
LEGACY_SYSTEMS = ("h200_sxm", "h100_sxm", "b200_sxm")
LEGACY_VERSIONS = (("vllm", "0.14.0"), ("vllm", "0.19.0"), ("sglang", "0.5.6.post2"), ("sglang", "0.5.10"))

ALL = frozenset(SYSTEMS)
HAS_FP8 = ALL - {"a100_sxm"}
HAS_FP4 = frozenset({"b200_sxm", "gb200", "b300_sxm", "gb300", "rtx_pro_6000_server"})
LARGE_MEMORY = ALL - {"a100_sxm", "l40s", "rtx_pro_6000_server"}


@dataclass(frozen=True)
class Parallelism:
    """Tensor and attention-data parallelism of a replica, and how its experts are split (tensor, expert)."""
    tp: int
    dp: int = 1
    moe_tp: int = 1
    moe_ep: int = 1


@dataclass(frozen=True)
class Variant:
    """A model in one number format. quant overrides the source's own choice of number formats."""
    name: str
    hf_path: str
    dtype: str
    parallelisms: tuple
    systems: frozenset = ALL
    quant: dict = field(default_factory=dict)
    legacy: bool = False  # measured for the legacy backend versions as well


def dense(*tps):
    return tuple(Parallelism(tp) for tp in tps)


def experts(*tps, dps=()):
    """Every TP with the experts split by tensor and by expert, and every DP with one slice of the experts a rank."""
    ways = []
    for tp in tps:
        ways += [Parallelism(1)] if tp == 1 else [Parallelism(tp, moe_tp=tp), Parallelism(tp, moe_ep=tp)]
    return tuple(ways) + tuple(Parallelism(1, dp=dp, moe_ep=dp) for dp in dps)


VARIANTS = (
    Variant("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B", "bf16", dense(1, 2, 4, 8), legacy=True),
    Variant("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B", "fp8", dense(1, 2, 4), HAS_FP8, {"gemm_quant_mode": "fp8"}),
    Variant("llama-3.1-70b", "nvidia/Llama-3.1-70B-Instruct-FP8", "fp8", dense(1, 2, 4, 8), HAS_FP8, legacy=True),
    Variant("llama-3.1-70b", "meta-llama/Meta-Llama-3.1-70B", "bf16", dense(1, 2, 4, 8)),
    Variant("qwen3-32b", "Qwen/Qwen3-32B-FP8", "fp8_block", dense(1, 2, 4, 8), HAS_FP8, legacy=True),
    Variant("qwen3-32b", "Qwen/Qwen3-32B", "fp8", dense(1, 2, 4, 8), HAS_FP8, {"gemm_quant_mode": "fp8"}),
    Variant("qwen3-32b", "Qwen/Qwen3-32B", "bf16", dense(1, 2, 4, 8), legacy=True),
    Variant("qwen3-8b", "Qwen/Qwen3-8B", "bf16", dense(1, 2)),
    Variant("qwen3-0.6b", "Qwen/Qwen3-0.6B", "bf16", dense(1), legacy=True),
    Variant("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", "bf16", experts(1, 2, 4, 8), legacy=True),
    Variant("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-FP8", "fp8_block", experts(1, 2, 4), HAS_FP8),
    Variant("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-FP8", "fp8_block", experts(4, 8, dps=(4, 8)), HAS_FP8, legacy=True),
    Variant("qwen3-235b-a22b", "nvidia/Qwen3-235B-A22B-NVFP4", "nvfp4", experts(2, 4, 8, dps=(8,)), HAS_FP4),
    Variant("gpt-oss-120b", "openai/gpt-oss-120b", "mxfp4", experts(1, 2, 4, 8, dps=(4, 8)), legacy=True),
    Variant("deepseek-v3", "deepseek-ai/DeepSeek-V3", "fp8_block",
            experts(8, dps=(8, 16)) + (Parallelism(4, dp=2, moe_ep=8),), LARGE_MEMORY, legacy=True),
    Variant("deepseek-v3.1", "nvidia/DeepSeek-V3.1-NVFP4", "nvfp4", experts(4, 8, dps=(4, 8)), HAS_FP4 & LARGE_MEMORY),
    Variant("kimi-k2.5", "nvidia/Kimi-K2.5-NVFP4", "nvfp4", experts(4, 8, dps=(4, 8)), HAS_FP4 & LARGE_MEMORY),
    Variant("kimi-k2.5", "moonshotai/Kimi-K2.5", "int4_wo", experts(8, dps=(8,)), LARGE_MEMORY),
)
