"""Asking an installed performance model, as a black box, for the parts of an engine pass.

    prefill(b, s, p) = Tok(b s) + Req(b) + sum_j m_j (K_j(b, s + p) (1 - (p / (s + p))^2) + c_j)
    decode(b, n)     = Gen(b) + sum_j m_j A_j(b, n + 1)

aiconfigurator-core 0.12 and AISimulate answer for one operator at a time (OperatorParts). aiconfigurator 0.10 answers for
whole passes only; as its passes have the same structure, exactly, the parts follow from differences (TotalsParts).
"""
import importlib
import inspect
import logging
from dataclasses import dataclass
from importlib.metadata import packages_distributions, version
from typing import Callable

import numpy as np

import fit

GIB = 1 << 30
DEFAULT_FRACTION = {"vllm": 0.9, "sglang": 0.88, "trtllm": 0.9}
STRUCTURE_TOLERANCE = 2e-3  # almost always 1e-15
# Tried in order where the backend has no attention data for the model's own number formats.
QUANT_FALLBACKS = ({}, {"fmha_quant_mode": "bfloat16"}, {"fmha_quant_mode": "bfloat16", "kvcache_quant_mode": "bfloat16"})


@dataclass
class AttentionTerm:
    """Attention of `layers` equal layers: value(batch, sequence) and constant are us for one layer.

    sequences: where to sample value, if not everywhere.
    """
    layers: float
    value: Callable[[int, int], float]
    constant: float = 0.0
    sequences: np.ndarray = None


class Source:
    """An installed package: aiconfigurator_core, aisimulate_core or aiconfigurator."""

    def __init__(self, package):
        logging.disable(logging.CRITICAL)
        part = lambda name: importlib.import_module(f"{package}.sdk.{name}")
        self.database = part("perf_database").get_database
        self.model = part("models").get_model
        self.model_config = part("config_builders").build_model_config
        self.backend = part("backends.factory").get_backend
        self.engine = part("rust_engine_step")._cached_engine_handle
        distribution = packages_distributions()[package][0]
        self.name, self.version = distribution.replace("_", "-"), version(distribution)
        self.root = importlib.import_module(package).__path__[0]

    @property
    def label(self):
        return f"{self.name} {self.version}"

    def deploy(self, system, backend, backend_version, variant, par):
        """The deployment, or the source's own error if it has no answer for it."""
        database = self.database(system, backend, backend_version)
        if database is None:
            raise RuntimeError(f"no performance database for {system} {backend} {backend_version}")
        error = None
        for fallback in QUANT_FALLBACKS:
            try:
                config = self.model_config(tp_size=par.tp, pp_size=1, attention_dp_size=par.dp, moe_tp_size=par.moe_tp,
                                           moe_ep_size=par.moe_ep, **{**variant.quant, **fallback})
                model = self.model(variant.hf_path, config, backend)
                handle = self.engine(model, database)
                engine = getattr(handle, "_engine", handle)
                engine.predict_prefill_latency(1, 128, 0)
                engine.predict_decode_latency(4, 128, 2)
                return Deployment(self, system, backend, database, model, engine)
            except Exception as e:  # the package raises many kinds; the last one explains best
                error = error or e
        raise error


class Deployment:
    """One model on one system, ready to be asked."""

    def __init__(self, source, system, backend, database, model, engine):
        self.source, self.system, self.backend_name, self.database = source, system, backend, database
        self.model, self.engine = model, engine
        self.backend_version = str(database.version)

    def prefill(self, batch, new, prefix=0):
        return self.engine.predict_prefill_latency(int(batch), int(new + prefix), int(prefix))

    def decode(self, batch, context):
        return self.engine.predict_decode_latency(int(batch), int(context), 2)

    def parts(self):
        return (OperatorParts if hasattr(self.engine, "evaluate_context_ops") else TotalsParts)(self)

    def formats(self):
        mode = lambda name: getattr(getattr(self.model.config, name), "name", "")
        return {"gemm": mode("gemm_quant_mode"), "moe": mode("moe_quant_mode"), "kv": mode("kvcache_quant_mode"),
                "fmha": mode("fmha_quant_mode")}

    def normalises_qk(self):
        """Whether the model applies a norm to queries and keys."""
        return any(getattr(op, "_use_qk_norm", False) for op in self.model.context_ops)

    def memory(self):
        """Bytes per GPU, as columns of configs.csv, and the KV tokens that the source itself would plan."""
        backend = self.source.backend(self.backend_name)
        accepted = inspect.signature(backend._get_memory_usage).parameters
        extra = {k: v for k, v in {"max_seq_len": 1, "mtp_activation_scaling": False}.items() if k in accepted}
        usage = lambda tokens: backend._get_memory_usage(self.model, self.database, batch_size=1, beam_width=1, isl=1, osl=1,
                                                         num_tokens=tokens, prefix=0, **extra)
        at_8192, at_16384 = usage(8192), usage(16384)
        activations, more = at_8192["activations"] * GIB, at_16384["activations"] * GIB
        kv = {n: float(self.model.get_kvcache_bytes_per_sequence(n)) for n in (1, 64, 4096, 131072)}
        capacity = float(self.database.system_spec["gpu"]["mem_capacity"])
        other = sum(at_8192[k] for k in ("weights", "activations", "others", "nccl")) * GIB
        fraction = DEFAULT_FRACTION[self.backend_name]
        budget = (capacity - other) * fraction if self.backend_name == "trtllm" else capacity * fraction - other
        tokens = getattr(self.model, "get_kvcache_max_tokens", lambda b: b // kv[1])
        return {
            "weights_bytes": int(at_8192["weights"] * GIB), "act_bytes_8192": int(activations),
            "act_bytes_per_token": round((more - activations) / 8192, 3),
            "act_min_bytes": int(backend.MIN_ACTIVATION_BYTES * (1 + backend.ACTIVATION_OVERHEAD_FRAC)),
            "comm_bytes": int(at_8192["nccl"] * GIB), "other_bytes": int(at_8192["others"] * GIB),
            "gpu_mem_bytes": int(capacity), "kv_bytes_per_token": int(kv[1]), "kv_bytes_64": int(kv[64]),
            "kv_bytes_4096": int(kv[4096]), "kv_bytes_131072": int(kv[131072]), "mem_fraction": fraction,
            "max_kv_tokens": int(tokens(budget)) if budget > 0 else 0}


# ---------------------------------------------------------------- one operator at a time

class OperatorParts:
    """Parts of a pass from an engine that prices single operators.

    An operator is called with (batch, length, prefix) and, apart from them, with the number of tokens x. One that reacts
    to the first (in decode: to the length) belongs to attention, the rest to Tok, Gen or, for the logits, Req.
    """
    sequences_per_octave = 16
    longest_check = fit.MAX_SEQUENCE  # whole passes say how good a fit is up to this length

    def __init__(self, deployment):
        self.engine, self.model = deployment.engine, deployment.model
        self.whole_prefill, self.whole_decode = deployment.prefill, deployment.decode
        self.tokens_ops, self.logits_ops, context = self._sort(self._context, "context")
        generation, _, decoding = self._sort(self._generation, "generation")
        self.generation_ops = generation
        self.context = [self._context_term(i) for i, _ in context]
        self.decoding = [self._decoding_term(i) for i, _ in decoding]
        self._context_x = [i for i, by_tokens in context if by_tokens]
        self._decoding_x = [i for i, by_tokens in decoding if by_tokens]
        self._check_structure(deployment)

    def tokens(self, xs):
        y = np.array([self._context(self.tokens_ops, 1, 1, 0, int(x)) for x in xs])
        return y + self._excess(self._context, self._context_x, xs)

    def requests(self, bs):
        return np.array([self._context(self.logits_ops, 1, 1, 0, int(b)) if self.logits_ops else 0.0 for b in bs])

    def generation(self, bs):
        y = np.array([self._generation(self.generation_ops, int(b), 1, 0, int(b)) for b in bs])
        return y + self._excess(self._generation, self._decoding_x, bs)

    def measured_share(self):
        """Percent of the time of (prefill 2 x 512, decode 16 x 2048) that the source bases on measured operators."""
        def share(ops):
            total = sum(o[1] for o in ops) or 1
            return round(100 * sum(o[1] for o in ops if o[3] in ("silicon", "mixed")) / total)
        every = lambda n: list(range(n))
        return (share(self.engine.evaluate_context_ops(every(self._counts["context"]), 2, 512, 0)),
                share(self.engine.evaluate_generation_ops(every(self._counts["generation"]), 16, 2048)))

    def grid_floor_us(self, kind, batches):
        """Error of a grid (us for one layer) that no pass can show."""
        return fit.PASS_FLOOR * fit.LAYER_US * (1 + batches[:, None] / fit.LAYER_BATCH)

    def _context(self, ops, batch, new, prefix, x):
        return sum(o[1] for o in self.engine.evaluate_context_ops(ops, batch, new, prefix, 1.0, x))

    def _generation(self, ops, batch, sequence, _, x):
        return sum(o[1] for o in self.engine.evaluate_generation_ops(ops, batch, sequence, 1.0, 0, x))

    def _excess(self, ask, ops, xs):
        """What attention operators cost for x tokens more than for one."""
        return sum((np.array([ask([i], 1, 1, 0, int(x)) for x in xs]) - ask([i], 1, 1, 0, 1) for i in ops), np.zeros(len(xs)))

    def _sort(self, ask, phase):
        tokens, logits, attention = [], [], []
        for i, name in enumerate(self._names(phase)):
            if phase == "context" and "logits" in name:
                logits.append(i)
                continue
            a, c = ask([i], 4, 64, 0, 64), ask([i], 4, 64, 0, 4096)
            b = ask([i], 8, 1024, 512, 64) if phase == "context" else ask([i], 4, 4096, 0, 64)
            differs = lambda u, v: abs(u - v) > 1e-9 * max(u, v)
            if differs(a, b):
                attention.append((i, differs(a, c)))
            else:
                tokens.append(i)
        return tokens, logits, attention

    def _names(self, phase):
        evaluate = getattr(self.engine, f"evaluate_{phase}_ops")
        names = []
        while True:
            try:
                answer = evaluate([len(names)], 2, 512)
            except ValueError as e:
                if "out of range" not in str(e):
                    raise
                self._counts = {**getattr(self, "_counts", {}), phase: len(names)}
                return names
            names.append(answer[0][0] if answer else "")

    def _layers(self, op):
        try:
            return float(op._scale_factor)
        except (TypeError, AttributeError):  # an operator that stands for the attention module of every layer
            return float(self.model._num_layers)

    def _context_term(self, i):
        layers = self._layers(self.model.context_ops[i])
        value = lambda b, full, prefix=0: self._context([i], b, full - prefix, prefix, 1)
        constant = 4 * value(1, 1024, 512) - 3 * value(1, 1024)  # half of the length cached: three quarters of the cost
        return AttentionTerm(layers, lambda b, s: max(value(b, s) - constant, 0) / layers * 1e3, constant / layers * 1e3)

    def _decoding_term(self, i):
        layers = self._layers(self.model.generation_ops[i])
        return AttentionTerm(layers, lambda b, s: self._generation([i], b, s, 0, 1) / layers * 1e3)

    def _check_structure(self, deployment):
        """The parts must add up to the source's whole pass; else the tables would be wrong, so refuse."""
        for batch, new, prefix in ((1, 200, 0), (3, 700, 0), (2, 1000, 3000), (7, 64, 8000), (1, 8192, 16384)):
            share = 1 - (prefix / (new + prefix)) ** 2
            got = self.tokens([batch * new])[0] + self.requests([batch])[0] + sum(
                t.layers * 1e-3 * (t.value(batch, new + prefix) * share + t.constant) for t in self.context)
            same_or_refuse(got, deployment.prefill(batch, new, prefix), f"prefill of {batch} x {new} after {prefix}")
        for batch, context in ((1, 300), (5, 1000), (64, 11000), (300, 700)):
            got = self.generation([batch])[0] + sum(t.layers * 1e-3 * t.value(batch, context + 1) for t in self.decoding)
            same_or_refuse(got, deployment.decode(batch, context), f"decode of {batch} x {context}")


def same_or_refuse(got, want, what):
    if abs(got - want) > STRUCTURE_TOLERANCE * want:
        raise RuntimeError(f"{what}: parts sum to {got:.6g} ms, the whole pass is {want:.6g} ms; the structure is not additive")


# ---------------------------------------------------------------- whole passes only

class TotalsParts:
    """Parts of a pass from whole passes.

    At a fixed (batch, new) Tok and Req cancel between two prefixes, which leaves equations in K at two lengths; what K
    leaves of a pass without a prefix is Tok + Req. Req is relative to one request, Gen to a context of one token: only
    sums matter. All layers form one attention term. These engines are slow, so fewer samples are taken.
    """
    sequences_per_octave = 8
    longest_check = fit.MAX_SEQUENCE
    ANCHOR, SMALL, CHUNK = 1024, 64, 64

    def __init__(self, deployment):
        self.prefill, self.decode = deployment.prefill, deployment.decode
        self._anchors = {}
        self.offset = 0.01 * self.decode(1, 1)  # keeps the attention part above zero
        self.context = [AttentionTerm(1.0, self._context_us)]
        self.decoding = [AttentionTerm(1.0, self._decoding_us)]

    def tokens(self, xs):
        return np.array([self.prefill(1, x) - self._context_ms(1, int(x)) for x in xs])

    def requests(self, bs):
        alone = dict(zip(bs, self.tokens(bs)))
        return np.array([self.prefill(b, 1) - self._context_ms(int(b), 1) - alone[b] for b in bs])

    def generation(self, bs):
        return np.array([self.decode(b, 1) for b in bs]) - self.offset

    def measured_share(self):
        return "", ""

    def whole_prefill(self, batch, new, prefix):
        return self.prefill(batch, new, prefix)

    def whole_decode(self, batch, context):
        return self.decode(batch, context)

    def grid_floor_us(self, kind, batches):
        """Error of a grid (us for all layers) that no pass of these batches can show."""
        least = self.generation(batches) if kind == "gen" else self.tokens(batches)
        return fit.PASS_FLOOR * 1e3 * least[:, None]

    def _share(self, full, new):
        return 1 - ((full - new) / full) ** 2

    def _anchor(self, batch):
        """K at ANCHOR and at SMALL tokens, and the pass that every longer K is compared with."""
        if batch not in self._anchors:
            long, short, few, many = 4 * self.ANCHOR, self.ANCHOR, 32, 768
            matrix = [[self._share(long, n), -self._share(short, n)] for n in (few, many)]
            right = [self.prefill(batch, n, long - n) - self.prefill(batch, n, short - n) for n in (few, many)]
            at_anchor = np.linalg.solve(matrix, right)[1]
            base = self.prefill(batch, self.CHUNK, self.ANCHOR - self.CHUNK) - at_anchor * self._share(self.ANCHOR, self.CHUNK)
            at_small = self.prefill(batch, self.CHUNK) - base
            tiny = self.prefill(batch, 1, self.SMALL - 1) - at_small * self._share(self.SMALL, 1)
            self._anchors[batch] = base, tiny
        return self._anchors[batch]

    def _context_ms(self, batch, full):
        base, tiny = self._anchor(batch)
        if full >= self.SMALL:
            return (self.prefill(batch, self.CHUNK, full - self.CHUNK) - base) / self._share(full, self.CHUNK)
        return (self.prefill(batch, 1, full - 1) - tiny) / self._share(full, 1)

    def _context_us(self, batch, full):
        return max(self._context_ms(batch, full), 0) * 1e3

    def _decoding_us(self, batch, sequence):
        """The pass at a context of sequence - 1 tokens; the source has no context below one token."""
        return max(self.decode(batch, max(sequence - 1, 1)) - self.decode(batch, 1) + self.offset, 1e-6) * 1e3
