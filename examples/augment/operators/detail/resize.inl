// What geometry.inl resizes with: neighbours and their weights.
#pragma once

namespace augment {

namespace detail {

SLUICE_HOST_DEVICE inline int least(int a, int b) { return a < b ? a : b; }
SLUICE_HOST_DEVICE inline int most(int a, int b) { return a > b ? a : b; }
SLUICE_HOST_DEVICE inline int clamped(int value, int low, int high) { return most(low, least(value, high)); }

template <int C>
SLUICE_HOST_DEVICE Pixel<C> filled(float value) {
    Pixel<C> result;
    for (int c = 0; c < C; ++c)
        result.value[c] = value;
    return result;
}

/// The two neighbours that a bilinear sample lies between, and the second one's weight.
struct Taps {
    int first;
    int second;
    float weight;
};

/// Those of the resized row or column `i`.
SLUICE_HOST_DEVICE inline Taps resize_taps(int i, float scale, int size) {
    const float centre = sum(product(scale, sum(static_cast<float>(i), 0.5f)), -0.5f);
    const float from_edge = centre > 0.0f ? centre : 0.0f;
    const int first = least(static_cast<int>(from_edge), size - 1);
    return {first, least(first + 1, size - 1), sum(from_edge, -static_cast<float>(first))};
}

/// The rows or columns that an antialiased resize takes its `i` from, and their weights.
struct Triangle {
    int begin;
    int end;
    float centre;
    float slope;

    SLUICE_HOST_DEVICE float weight(int j) const {
        const float distance = product(sum(sum(static_cast<float>(j), 0.5f), -centre), slope);
        const float value = 1.0f - (distance < 0.0f ? -distance : distance);
        return value > 0.0f ? value : 0.0f;
    }
    SLUICE_HOST_DEVICE float total() const {
        float result = 0.0f;
        for (int j = begin; j < end; ++j)
            result += weight(j);
        return result;
    }
};

SLUICE_HOST_DEVICE inline Triangle triangle(int i, float scale, int size) {
    const float support = scale > 1.0f ? scale : 1.0f;
    const float centre = product(scale, sum(static_cast<float>(i), 0.5f));
    const int begin = most(static_cast<int>(sum(sum(centre, -support), 0.5f)), 0);
    const int end = least(static_cast<int>(sum(sum(centre, support), 0.5f)), size);
    return {begin, end, centre, 1.0f / support};
}

/// The weights of a few rows or columns, computed once.
struct KeptWeights {
    static constexpr int most = 6; ///< enough to shrink to half the size
    float kept[static_cast<std::size_t>(most)];
    float sum_of_all = 0.0f;

    SLUICE_HOST_DEVICE explicit KeptWeights(const Triangle& from) {
        for (int k = 0; k < most; ++k) {
            kept[k] = from.begin + k < from.end ? from.weight(from.begin + k) : 0.0f;
            sum_of_all += kept[k];
        }
    }
    SLUICE_HOST_DEVICE float total() const { return sum_of_all; }
};

/// A row of what `filtered` computes.
template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> filtered_row(const Previous& previous, int j, const Triangle& columns,
                                         const Triangle& weights) {
    Pixel<C> row = filled<C>(0.0f);
    for (int i = columns.begin; i < columns.end; ++i) {
        const float weight = weights.weight(i);
        const Pixel<C> pixel = previous(j, i);
        for (int c = 0; c < C; ++c)
            row.value[c] += weight * pixel.value[c];
    }
    return row;
}
template <int C, class Previous>
SLUICE_HOST_DEVICE Pixel<C> filtered_row(const Previous& previous, int j, const Triangle& columns,
                                         const KeptWeights& weights) {
    Pixel<C> row = filled<C>(0.0f);
    for (int k = 0; k < KeptWeights::most; ++k) {
        if (columns.begin + k >= columns.end)
            break;
        const Pixel<C> pixel = previous(j, columns.begin + k);
        for (int c = 0; c < C; ++c)
            row.value[c] += weights.kept[k] * pixel.value[c];
    }
    return row;
}

/// The mean of `rows` and `columns`, weighted with `weights` along columns.
template <int C, class Previous, class Weights>
SLUICE_HOST_DEVICE Pixel<C> filtered(const Previous& previous, const Triangle& rows, const Triangle& columns,
                                     const Weights& weights) {
    Pixel<C> result = filled<C>(0.0f);
    float total = 0.0f;
    for (int j = rows.begin; j < rows.end; ++j) {
        const Pixel<C> row = filtered_row<C>(previous, j, columns, weights);
        const float weight = rows.weight(j);
        total += weight;
        for (int c = 0; c < C; ++c)
            result.value[c] += weight * row.value[c];
    }
    total *= weights.total();
    for (int c = 0; c < C; ++c)
        result.value[c] /= total;
    return result;
}

template <int C>
SLUICE_HOST_DEVICE Pixel<C> between(const Pixel<C>& a, const Pixel<C>& b, float weight) {
    Pixel<C> result;
    for (int c = 0; c < C; ++c)
        result.value[c] = a.value[c] + weight * (b.value[c] - a.value[c]);
    return result;
}

} // namespace detail

} // namespace augment
