# Prints a distribution of deadline fractions, as tracegen takes it. skew:5, skew:0, ... are the published
# ones: 50,000 samples of a skew normal (Azzalini) are shifted so that the smallest is 0, scaled so that the
# largest is 1, raised to at least 0.1, and rounded to two decimals. The probabilities are computed without
# samples, from the medians of the smallest and of the largest one. Other distributions are printed as given.
# usage: awk -v fraction=skew:5 -f fraction.awk
function density(x) { return 0.3989422804014327 * exp(-x * x / 2) }

function at(x,    i, k) { # the probability of a sample below x
    i = (x + 6) / step
    k = i < 0 ? 0 : i >= n ? n - 1 : int(i)
    return below[k] + (below[k + 1] - below[k]) * (i - k)
}

BEGIN {
    if (fraction !~ /^skew:/) {
        print fraction
        exit
    }
    skew = substr(fraction, 6)
    step = 0.0005
    n = 12 / step
    # integrates the density, 2 phi(x) Phi(skew x), by the trapezoidal rule
    half = skew > 0 ? 0 : skew < 0 ? 1 : 0.5
    for (i = 1; i <= n; i++) {
        x = -6 + i * step
        half += skew * step / 2 * (density(skew * (x - step)) + density(skew * x))
        now = 2 * density(x) * half
        below[i] = below[i - 1] + step / 2 * (before + now)
        before = now
    }
    extreme = 0.5 ^ (1 / 50000)
    for (i = 1; i <= n; i++) {
        if (below[i] < 1 - extreme)
            low = -6 + i * step
        if (below[i] < extreme)
            high = -6 + i * step
    }
    for (v = 10; v <= 100; v++) {
        p = (v < 100 ? at(low + (v + 0.5) / 100 * (high - low)) : 1) - last
        last += p
        share[v] = sprintf("%.6f", p) + 0
        sum += share[v]
        largest = share[v] > share[largest] ? v : largest
    }
    share[largest] += 1 - sum
    for (v = 10; v <= 100; v++)
        if (share[v] > 0)
            printf "%s%g=%.6f", comma++ ? "," : "pmf:", v / 100, share[v]
    print ""
}
