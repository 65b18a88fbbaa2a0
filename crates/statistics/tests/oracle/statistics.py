"""Golden values of statistics/tests.rs. Needs SciPy; prints Rust constants."""
import numpy as np
from scipy import stats

x = [3.1, 0.4, 7.25, 1.5, 2.2, 9.9, 0.05, 4.4, 4.4, 6.0, 1.25]
print("quantiles", [float(np.quantile(x, q)) for q in (0.01, 0.5, 0.9, 0.95, 0.99, 0.999)], "mean", float(np.mean(x)))

base = np.array([1.10, 0.95, 1.30, 1.05, 1.22, 0.99, 1.15, 1.08, 1.27, 1.01])
var = np.array([0.80, 0.78, 1.01, 0.83, 0.90, 0.82, 0.86, 0.88, 0.99, 0.77])
n = len(base)
tail = stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1))
print("expanded tail", [float(stats.norm.cdf(-np.sqrt(k / (k - 1)) * stats.t.ppf(0.975, k - 1))) for k in (2, 5, 10, 20)])


def log_ratio(v, b, axis=-1):
    return np.log(v.mean(axis=axis) / b.mean(axis=axis))


r = stats.bootstrap((var, base), log_ratio, paired=True, vectorized=True, method="percentile",
                    confidence_level=1 - 2 * tail, n_resamples=400_000, random_state=1)
print("ratio", float(np.exp(log_ratio(var, base))), "ci", [float(np.exp(z)) for z in r.confidence_interval],
      "se", float(r.standard_error))
t = abs(log_ratio(var, base)) / (r.standard_error * np.sqrt(n / (n - 1)))
print("p", float(2 * stats.t.sf(t, n - 1)))
m = stats.bootstrap((base,), np.mean, method="percentile", confidence_level=1 - 2 * tail, n_resamples=400_000, random_state=1)
print("mean ci", [float(z) for z in m.confidence_interval], "t interval", stats.t.interval(0.95, n - 1, base.mean(), stats.sem(base)))
