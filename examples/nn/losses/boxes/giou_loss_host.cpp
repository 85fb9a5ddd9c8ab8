// The box losses on the Host backend.
#include <nn/losses/boxes/detail/instantiate.hpp>
#include <nn/losses/boxes/detail/per_box.hpp>
#include <nn/losses/boxes/giou_loss.hpp>

namespace nn::detail {

namespace {

/// Adds up a row, and writes its gradient.
template <class Formula, class P, class U, class G>
double sum_of_row(const RowArguments<P, U, G>& all, std::int64_t row) {
    const std::int64_t length = row < all.targets.rows() ? all.targets.length(row) : 0;
    const std::int64_t known = length <= all.width ? length : 0;
    double sum = known == length ? 0.0 : NAN;
    const Box<U>* const targets = known > 0 ? all.targets.row(row).data() : nullptr;
    const Box<P>* const predictions = all.predictions + row * all.width;
    if (all.gradient == nullptr) {
        for (std::int64_t p = 0; p < known; ++p)
            sum += worked_value<Formula>(predictions[p], targets[p], all.work);
        return sum;
    }
    Box<G>* const gradient = all.gradient + row * all.width;
    const double factor = gradient_factor(all.scale, divisor_of(all.targets.size()));
    for (std::int64_t p = 0; p < known; ++p)
        sum += value_and_gradient<Formula>(predictions[p], targets[p], factor, gradient[p]);
    for (std::int64_t p = known; p < all.width; ++p)
        gradient[p] = zero_box<G>();
    return sum;
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
        const double factor = gradient_factor(all.scale, divisor_of(size));
        double sum = same ? 0.0 : NAN;
        for (std::int64_t i = 0; i < size; ++i) {
            if (!same) {
                if (all.gradient != nullptr)
                    all.gradient[i] = zero_box<G>();
            } else if (all.gradient != nullptr) {
                sum +=
                    value_and_gradient<Formula>(all.predictions[i], all.targets[i], factor, all.gradient[i]);
            } else {
                sum += worked_value<Formula>(all.predictions[i], all.targets[i], all.work);
            }
        }
        if (all.mean != nullptr)
            *all.mean = static_cast<float>(sum / divisor_of(size));
    });
}

NN_INSTANTIATE_GIOU_LOSS(sluice::Host)

} // namespace nn::detail
