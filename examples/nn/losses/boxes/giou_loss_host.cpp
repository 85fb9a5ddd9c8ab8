// The box losses on the Host backend.
#include <algorithm>

#include <nn/losses/boxes/detail/instantiate.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>
#include <nn/losses/boxes/giou_loss.hpp>

namespace nn::detail {

namespace {

/// Adds up `count` pairs from prediction `place` and target `i` on, and writes their gradient if it is asked for.
template <class Formula, class Arguments>
double sum_of_pairs(const Arguments& all, std::int64_t place, std::int64_t i, std::int64_t count) {
    double sum = 0.0;
    if (all.gradient == nullptr) {
        for (std::int64_t p = 0; p < count; ++p)
            sum += value_of_pair<Formula, false>(all, place + p, i + p, 0.0);
    } else {
        const double factor = gradient_factor(all.scale, divisor_of(all.targets.size()));
        for (std::int64_t p = 0; p < count; ++p)
            sum += value_of_pair<Formula, true>(all, place + p, i + p, factor);
    }
    return sum;
}

/// Of predictions from `begin` to `end`, which have no targets.
template <class G>
void clear_gradient(Box<G>* gradient, std::int64_t begin, std::int64_t end) {
    if (gradient != nullptr)
        std::fill(gradient + begin, gradient + end, zero_box<G>());
}

/// Adds up a row, and writes its gradient.
template <class Formula, class P, class U, class G>
double sum_of_row(const RowArguments<P, U, G>& all, std::int64_t row) {
    const std::int64_t length = row < all.targets.rows() ? all.targets.length(row) : 0;
    const std::int64_t known = length <= all.width ? length : 0;
    const std::int64_t place = row * all.width;
    const double sum = known > 0 ? sum_of_pairs<Formula>(all, place, all.targets.offset(row), known) : 0.0;
    clear_gradient(all.gradient, place + known, place + all.width);
    return known == length ? sum : NAN;
}

} // namespace

template <bool skips, class Term, sluice::Backend B>
void masked_mean(sluice::BasicStreamRef<B> stream, const Term& term, const MaskSums& all) {
    stream.enqueue([term, all] {
        double sum = 0.0;
        double count = 0.0;
        for (std::int64_t i = 0; i < all.boxes; ++i) {
            const bool real = all.mask[i] != 0;
            if (skips && !real)
                continue;
            const double value = term(i);
            sum += real ? value : 0.0;
            count += real ? 1.0 : 0.0;
        }
        *all.count = count;
        if (all.mean != nullptr)
            *all.mean = static_cast<float>(sum / (count > 1.0 ? count : 1.0));
    });
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_rows(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments) {
    stream.enqueue([all = arguments] {
        double sum = 0.0;
        for (std::int64_t row = 0; row < all.rows; ++row)
            sum += sum_of_row<Formula>(all, row);
        if (all.mean != nullptr)
            *all.mean = static_cast<float>(sum / divisor_of(all.targets.size()));
    });
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_loop(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments) {
    for (std::int64_t row = 0; row < arguments.rows; ++row)
        stream.enqueue([all = arguments, row] { all.partials[row] = sum_of_row<Formula>(all, row); });
    if (arguments.mean == nullptr)
        return;
    stream.enqueue([all = arguments] {
        double sum = 0.0;
        for (std::int64_t row = 0; row < all.rows; ++row)
            sum += all.partials[row];
        *all.mean = static_cast<float>(sum / divisor_of(all.targets.size()));
    });
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_values(sluice::BasicStreamRef<B> stream, const ValueArguments<P, U, G>& arguments) {
    stream.enqueue([all = arguments] {
        const std::int64_t size = all.predictions.size();
        const bool same = all.targets.size() == size;
        const double sum = same ? sum_of_pairs<Formula>(all, 0, 0, size) : NAN;
        if (!same)
            clear_gradient(all.gradient, 0, size);
        if (all.mean != nullptr)
            *all.mean = static_cast<float>(sum / divisor_of(size));
    });
}

NN_INSTANTIATE_GIOU_LOSS(sluice::Host)

} // namespace nn::detail
