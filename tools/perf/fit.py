"""Fitting measured step times by curves and grids that a reader interpolates linearly.

A curve is piecewise linear in x. A grid is rectangular in (batch, sequence); kind "gen" is bilinear, kind "ctx" is linear
in batch and linear in the square root of the value along the sequence, because attention over a prompt grows with its
square. Both fits choose the fewest lines they can find while every sample stays within a tolerance: walk along the axis
and always take the longest segment that still fits, for all rows of the grid at once.
"""
import math

import numpy as np

MAX_TOKENS, MAX_PREFILL_BATCH, MAX_DECODE_BATCH, MAX_SEQUENCE = 65536, 256, 2048, 262144
MAX_REQUESTS = 1024
POWERS_OF_TWO = tuple(1 << k for k in range(17))
SMALL_BATCHES = (1, 2, 3, 4, 8)       # the commonest arguments, so they are lines of every table
MEASURED_STRAIGHTNESS = 1e-10         # relative; the source interpolates exactly where it measured, to rounding

CURVE_TOLERANCE, CURVE_TOLERANCE_BUSY, BUSY_TOKENS = 0.002, 0.0008, (4096, 16384)
REQUESTS_TOLERANCE = 0.005
# Grids: relative tolerance, tight for what passes mostly hold and rising with the tokens (batch x sequence) beyond that,
# where sources extrapolate from ragged measurements: (tokens, exponent, most, batch from which it rises as well).
GRID_TOLERANCE = 0.0045
GRID_SLACK = {"ctx": (1 << 16, 0.75, 0.10, 16), "gen": (1 << 19, 1.0, 0.05, MAX_DECODE_BATCH)}
GRID_SURE_TOKENS = 1 << 20                               # beyond, values are sampled less densely
FIRST_SEQUENCE = {"ctx": 1, "gen": 8}                    # sources are erratic at decode contexts below 8 tokens
PASS_FLOOR = 0.0015                                      # error that never matters, as a share of the shortest pass
LAYER_US, LAYER_BATCH = 100.0, 64                        # least time of a layer: LAYER_US (1 + batch / LAYER_BATCH)


# ---------------------------------------------------------------- where to look

def log_spaced(low, high, per_octave):
    steps = int(math.log2(high / low) * per_octave) + 1
    return {min(high, round(low * 2 ** (k / per_octave))) for k in range(steps + 1)}


def token_samples(high):
    """Every small count, 128 an octave above, and both sides of the tile sizes where a GEMM takes one more wave."""
    xs = set(range(1, min(high, 1024) + 1)) | (log_spaced(1024, high, 128) if high > 1024 else set())
    for low, top, step in ((1024, 4096, 64), (4096, 16384, 128), (16384, high, 2048)):
        for x in range(low, min(top, high) + 1, step):
            xs |= {x, x + 1}
    return np.array(sorted(x for x in xs if x <= high))


def batch_samples(high):
    """Every batch up to 16, 4 an octave above, and the one behind each power of two, where a source's surface has its edges."""
    bs = set(range(1, 17)) | log_spaced(16, high, 4)
    bs |= {b + 1 for b in POWERS_OF_TWO if 16 <= b < high}
    return np.array(sorted(b for b in bs if b <= high))


def sequence_samples(kind, per_octave):
    """So many an octave that a kink just beyond the measured frontier has a sample right behind it."""
    ss = set(range(FIRST_SEQUENCE[kind], 33)) | log_spaced(32, MAX_SEQUENCE, per_octave)
    ss |= {s for k in range(5, 18) for s in (1 << k, 3 << (k - 1), 5 << (k - 2))}
    return np.array(sorted(ss))


# ---------------------------------------------------------------- longest segments

def longest_segments(x, values, tolerance, squares=False, forced=()):
    """Indices of x to keep so that values (rows x len(x)) stay within tolerance (absolute, same shape) of the interpolation.

    squares: interpolate the square roots and square the result. forced: values of x that must be kept.
    """
    x = np.asarray(x, float)
    base = np.sqrt(values) if squares else values
    last = len(x) - 1
    stops = sorted({int(np.searchsorted(x, f)) for f in forced if x[0] <= f <= x[-1]} | {last})

    def fits(i, j):
        t = (x[i + 1:j] - x[i]) / (x[j] - x[i])
        line = base[:, i, None] + (base[:, j] - base[:, i])[:, None] * t
        return bool(np.all(np.abs((line * line if squares else line) - values[:, i + 1:j]) <= tolerance[:, i + 1:j]))

    keep, i = [0], 0
    while i < last:
        stop = next(s for s in stops if s > i)
        step, good = 1, i + 1
        while good < stop and fits(i, min(good + step, stop)):
            good = min(good + step, stop)
            step *= 2
        bad = min(good + step, stop + 1)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if fits(i, middle) else (good, middle)
        keep.append(good)
        i = good
    return keep


def fit_curve(x, y, tolerance, forced=()):
    keep = longest_segments(x, y[None, :], (tolerance * np.maximum(np.abs(y), 1e-9))[None, :], forced=forced)
    return x[keep], y[keep]


def token_tolerance(x):
    return np.where((x >= BUSY_TOKENS[0]) & (x <= BUSY_TOKENS[1]), CURVE_TOLERANCE_BUSY, CURVE_TOLERANCE)


def grid_tolerance(kind, batches, sequences, values, floor):
    """Absolute tolerance of every sample."""
    tokens_free, exponent, most, batch_free = GRID_SLACK[kind]
    tokens, batch = batches[:, None] * sequences[None, :].astype(float), batches[:, None]
    slack = np.maximum(1, np.maximum((tokens / tokens_free) ** exponent, (batch / batch_free) ** 2))
    return np.maximum(np.minimum(GRID_TOLERANCE * slack, most) * values, floor)


def fit_grid(kind, batches, sequences, values, floor):
    """Lines of a grid over all samples, and the values on them. floor: absolute error (in us) that never matters."""
    tolerance = grid_tolerance(kind, batches, sequences, values, floor)
    along = longest_segments(sequences, values, tolerance, squares=kind == "ctx")
    across = longest_segments(batches, values.T, tolerance.T, forced=SMALL_BATCHES)
    drop_lines(kind, batches, sequences, values, tolerance, across, along)
    return batches[across], sequences[along], values[np.ix_(across, along)]


def drop_lines(kind, batches, sequences, values, tolerance, across, along):
    """Remove the lines (indices, in place) that the others replace: each axis was fitted as if the other were exact."""
    b, s = np.repeat(batches, len(sequences)), np.tile(sequences, len(batches))

    def fits():
        got = grid_at(kind, batches[across], sequences[along], values[np.ix_(across, along)], b, s).reshape(values.shape)
        return np.all(np.abs(got - values) <= tolerance)

    for lines, needed in ((across, [i for i, x in enumerate(batches) if x in SMALL_BATCHES]), (along, [])):
        for line in lines[1:-1]:
            at = lines.index(line)
            if line not in needed:
                lines.remove(line)
                if not fits():
                    lines.insert(at, line)


# ---------------------------------------------------------------- the reading rule

def segment(axis, x):
    i = np.clip(np.searchsorted(axis, x, side="right") - 1, 0, max(len(axis) - 2, 0))
    j = np.minimum(i + 1, len(axis) - 1)
    width = np.where(j > i, axis[j] - axis[i], 1)
    return i, j, np.maximum((x - axis[i]) / width, 0)


def curve_at(x, y, at):
    i, j, t = segment(np.asarray(x, float), np.asarray(at, float))
    return y[i] + (y[j] - y[i]) * t


def grid_at(kind, batches, sequences, values, batch, sequence):
    i, i1, t = segment(np.asarray(batches, float), np.asarray(batch, float))
    j, j1, u = segment(np.asarray(sequences, float), np.asarray(sequence, float))
    base = np.sqrt(values) if kind == "ctx" else values

    def row(k):
        r = base[k, j] + (base[k, j1] - base[k, j]) * u
        return r * r if kind == "ctx" else r

    return row(i) + (row(i1) - row(i)) * t


# ---------------------------------------------------------------- what the source measured

def measured_frontier(kind, value, batch):
    """Largest sequence that the source measured for this batch; 0 when it cannot be told.

    Between two measured lengths the source interpolates, exactly along a straight line (of the square root for kind ctx);
    beyond the last it extrapolates along something curved. Decode averages over neighbouring lengths, so only the middle
    of an octave is straight there; prompts are also measured at quarters of an octave.
    """
    if kind == "ctx":
        windows = [(1 << k, q) for k in range(5, 18) for q in range(4)]
        bounds = [(p * (4 + q) // 4, p * (5 + q) // 4, p * (5 + q) // 4) for p, q in windows]
    else:
        bounds = [(round(1.35 * 2 ** k), round(1.65 * 2 ** k), 2 << k) for k in range(4, 18)]
    for low, high, end in reversed(bounds):
        xs = np.array([low + (high - low) * k // 4 for k in range(5)], float)
        ys = np.array([value(batch, int(x)) for x in xs])
        if kind == "ctx":
            ys = np.sqrt(np.maximum(ys, 0))
        line = ys[0] + (ys[-1] - ys[0]) * (xs - xs[0]) / (xs[-1] - xs[0])
        if ys[-1] > ys[0] and np.all(np.abs(line - ys) <= MEASURED_STRAIGHTNESS * np.abs(ys)):
            return end
    return 0
