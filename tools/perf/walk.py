"""Long prompts as the oldest pinned backend versions see them.

Simulators that pin these versions ask aiconfigurator 0.10 in Python, operator by operator. Up to 16384 tokens that agrees
with its compiled engine; beyond, its attention over a prompt is dearer (1.4 times at 32 k tokens, more than twice at 64 k).
It takes milliseconds a value, so it is asked at few lengths and batches, and between them the reading rule holds.
"""
import numpy as np

import engines
import fit

VERSIONS = {("vllm", "0.14.0"), ("sglang", "0.5.6.post2")}
AGREES_TO = 16384
LENGTHS = np.array([round(AGREES_TO * 2 ** (k / 4)) for k in range(17)])
BATCHES = np.array([1, 2, 3, 4, 8, 16, 32])


class WalkParts(engines.TotalsParts):
    """Parts of a pass whose prompt attention beyond AGREES_TO comes from the Python operators."""

    def __init__(self, deployment, known):
        super().__init__(deployment)
        self.database, self.hf_path, self.known = deployment.database, deployment.model.model_path, known
        self.ops = [o for o in deployment.model.context_ops if type(o).__name__ == "ContextAttention"]
        if not self.ops:
            return  # multi-head latent attention: both ways agree
        self.longest_check = AGREES_TO
        self.walked = np.array([[self._walk_us(int(b), int(f)) for f in LENGTHS] for b in BATCHES])
        sequences = fit.sequence_samples("ctx", self.sequences_per_octave)
        sequences = np.concatenate([sequences[sequences <= AGREES_TO], LENGTHS[1:]])
        self.context = [engines.AttentionTerm(1.0, self._value_us, sequences=sequences)]

    def _value_us(self, batch, full):
        engine = self._context_us(batch, full)
        if full <= AGREES_TO:
            return engine
        walked = float(fit.grid_at("ctx", BATCHES, LENGTHS, self.walked, min(batch, BATCHES[-1]), full))
        if batch <= BATCHES[-1]:
            return walked
        return walked * engine / self._context_us(int(BATCHES[-1]), full)

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
            self.known[key] = float(op.query(
                self.database, x=batch * (full - prefix), batch_size=batch, beam_width=1, s=full - prefix, prefix=prefix,
                model_name=self.hf_path, seq_imbalance_correction_scale=1.0)) / op._scale_factor
        return self.known[key] * op._scale_factor
