"""Passes as simulators see them that pin the oldest backend versions.

They ask aiconfigurator 0.10 in Python, operator by operator, and that differs from its compiled engine in two places: the
projection to logits at some batches, and attention over prompts beyond 16384 tokens, which is dearer (1.4 times at 32 k
tokens, more than twice at 64 k). It takes milliseconds a value, so it is asked at few lengths and batches. Its attention is
cheaper at batches that are powers of two than at their neighbours, so both are asked.
"""
import numpy as np

import engines
import fit

VERSIONS = {("vllm", "0.14.0"), ("sglang", "0.5.6.post2")}
AGREES_TO = 16384
LENGTHS = np.array([round(AGREES_TO * 2 ** (k / 4)) for k in range(17)])
BATCHES = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32])
LOGITS_BATCHES = np.array([*range(1, 33), *sorted(fit.log_spaced(36, 512, 4) | {63, 64, 65, 127, 128, 129, 255, 256, 257})])
LOGITS_CONTEXT = 299


class WalkParts(engines.TotalsParts):
    """Parts of a pass whose logits, and prompt attention beyond AGREES_TO, come from the Python operators."""

    def __init__(self, deployment, known):
        super().__init__(deployment)
        self.database, self.hf_path, self.known = deployment.database, deployment.model.model_path, known
        generation = deployment.model.generation_ops
        self.logits = np.array([sum(self._query(o, "gen_", int(b), batch_size=int(b), s=LOGITS_CONTEXT + 1) for o in generation) -
                                self.decode(b, LOGITS_CONTEXT) for b in LOGITS_BATCHES])
        self.ops = [o for o in deployment.model.context_ops if type(o).__name__ == "ContextAttention"]
        if not self.ops:
            return  # multi-head latent attention: both ways agree
        self.longest_check = AGREES_TO
        self.walked = np.array([[self._walk_us(int(b), int(f)) for f in LENGTHS] for b in BATCHES])
        sequences = fit.sequence_samples("ctx", self.sequences_per_octave)
        sequences = np.concatenate([sequences[sequences <= AGREES_TO], LENGTHS[1:]])
        self.context = [engines.AttentionTerm(1.0, self._value_us, sequences=sequences)]

    def requests(self, bs):
        return super().requests(bs) + self._logits(bs)

    def generation(self, bs):
        return super().generation(bs) + self._logits(bs)

    def whole_prefill(self, batch, new, prefix):
        return self.prefill(batch, new, prefix) + self._logits(batch)

    def whole_decode(self, batch, context):
        return self.decode(batch, context) + self._logits(batch)

    def _logits(self, batches):
        """What the Python projection to logits takes longer than the engine's, in ms."""
        return np.interp(batches, LOGITS_BATCHES, self.logits)

    def _query(self, op, phase, x, **shape):
        """Milliseconds of all layers."""
        return float(op.query(self.database, x=x, beam_width=1, model_name=self.hf_path,
                              **{"prefix": 0, f"{phase}seq_imbalance_correction_scale": 1.0, **shape}))

    def _value_us(self, batch, full):
        engine = self._context_us(batch, full)
        if full <= AGREES_TO:
            return engine
        walked = float(fit.grid_at("ctx", BATCHES, LENGTHS, self.walked, min(batch, BATCHES[-1]), full))
        at_last = self._context_us(int(BATCHES[-1]), full)
        return walked * engine / at_last if batch > BATCHES[-1] and at_last > 0 else walked

    def _walk_us(self, batch, full):
        constant = 4 * self._ask(1, 1024, 512) - 3 * self._ask(1, 1024, 0)
        return max(self._ask(batch, full, 0) - constant, 0) * 1e3

    def _ask(self, batch, full, prefix):
        """Milliseconds of all attention operators, kept for other deployments with equal heads."""
        return sum(self._ask_operator(o, batch, full, prefix) for o in self.ops)

    def _ask_operator(self, op, batch, full, prefix):
        key = (*(str(getattr(op, a)) for a in ("_n", "_n_kv", "_head_size", "_window_size", "_use_qk_norm",
                                               "_kvcache_quant_mode", "_fmha_quant_mode")), batch, full, prefix)
        if key not in self.known:
            cost = self._query(op, "", batch * (full - prefix), batch_size=batch, s=full - prefix, prefix=prefix)
            self.known[key] = cost / op._scale_factor
        return self.known[key] * op._scale_factor
