#!/usr/bin/env python3
"""Results of SciPy that the tests of src/stats.rs compare with.

Usage: make.py > goldens.json     (pip install scipy==1.17.1 numpy==2.4.6)
"""
import json

import numpy as np
from scipy import stats

RESAMPLES = 20000


def skewed(rng, count, level):
    """Samples that look like times: a floor, a skewed rest, now and then a severe outlier."""
    values = level * (1 + 0.03 * rng.gamma(1.5, size=count))
    values[rng.random(count) < 0.03] *= 3
    return values


def bootstrap(values, seed):
    found = stats.bootstrap(
        (values,), np.median, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(seed)
    )
    return [found.confidence_interval.low, found.confidence_interval.high]


def series(rng, count):
    values = skewed(rng, count, 100.0)
    walsh = (values[:, None] + values[None, :])[np.triu_indices(count)] / 2
    return {
        "values": values.tolist(),
        "median": float(np.median(values)),
        "mad": float(stats.median_abs_deviation(values)),
        "p5": float(np.quantile(values, 0.05)),
        "p95": float(np.quantile(values, 0.95)),
        "interval": [float(end) for end in bootstrap(values, count)],
        "hodges_lehmann": float(np.median(walsh)),
    }


def pair(rng, n1, n2, shift, digits=None):
    a, b = skewed(rng, n1, 100.0), skewed(rng, n2, 100.0 * shift)
    if digits is not None:
        a, b = a.round(digits), b.round(digits)
    test = stats.mannwhitneyu(a, b, alternative="two-sided", method="auto")
    tied = len(np.unique(np.concatenate([a, b]))) < n1 + n2
    exact = not tied and max(n1, n2) <= 20
    method = "exact" if exact else "asymptotic"
    test = stats.mannwhitneyu(a, b, alternative="two-sided", method=method, use_continuity=True)
    shifts = np.log(a)[:, None] - np.log(b)[None, :]
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "u": float(test.statistic),
        "p": float(test.pvalue),
        "ratio": float(np.exp(np.median(shifts))),
    }


def main():
    rng = np.random.default_rng(20261121)
    goldens = {
        "series": [series(rng, count) for count in (9, 31, 48)],
        "pairs": [
            pair(rng, 5, 7, 1.05),
            pair(rng, 9, 9, 1.0),
            pair(rng, 20, 20, 1.03),
            pair(rng, 21, 9, 1.02),
            pair(rng, 40, 48, 1.01),
            pair(rng, 12, 12, 1.02, digits=0),
            pair(rng, 30, 30, 0.98, digits=0),
        ],
        "holm": {
            "p": [0.003, 0.2, 0.0005, 0.04, 0.04, 0.9],
            # statsmodels.stats.multitest.multipletests(p, method="holm"), written out.
            "corrected": [0.003 * 5, 0.4, 0.0005 * 6, 0.16, 0.16, 0.9],
        },
        "normal": [{"z": z, "upper": float(stats.norm.sf(z))} for z in (-3.0, -0.5, 0.0, 1.0, 2.5, 6.0, 9.0)],
    }
    print(json.dumps(goldens, indent=1))


if __name__ == "__main__":
    main()
