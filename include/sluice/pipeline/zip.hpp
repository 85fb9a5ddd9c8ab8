/// \file
/// Batches of two sources in one step.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <sluice/backend/detail/iterators.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/pipeline/detail/joined_places.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice {

/// One batch of each of two sources, as stages take it: `const Zipped<Image, Pose>&`. A stage may also take one of them alone,
/// `const Image&`, where they are of different types.
template <class First, class Second>
struct Zipped {
    const First& first;   ///< Of the first source.
    const Second& second; ///< Of the second one.

    /// The first one.
    operator const First&() const noexcept { return first; }
    /// The second one.
    operator const Second&() const noexcept { return second; }
};

/// The same of sources of one type.
template <class Both>
struct Zipped<Both, Both> {
    const Both& first;  ///< Of the first source.
    const Both& second; ///< Of the second one.
};

/// When it came into being: when the first one did, see `PipelineOptions::timed_batches`.
template <class First, class Second>
auto batch_time(const Zipped<First, Second>& batch) -> decltype(batch_time(batch.first)) {
    return batch_time(batch.first);
}

namespace detail {
/// Whether both take their batches from one source.
template <class A, class B>
bool share_source(const A& a, const B& b) noexcept {
    if constexpr (requires { a.takes_from(b); })
        return a.takes_from(b);
    else if constexpr (requires { b.takes_from(a); })
        return b.takes_from(a);
    else
        return static_cast<const void*>(&a) == &b;
}
} // namespace detail

/// The newest batch of a source at each step, for `zip`. Made by `latest`.
template <class From>
class Latest {
public:
    /// Whose streams read the batches.
    using backend = typename From::backend;
    /// What `next` gives.
    using value_type = typename From::value_type;

    /// Asks for nothing yet. Called by `latest`.
    explicit Latest(From& source) : source_(&source) {
        if (source.slots() < 2)
            throw Error("latest: the source needs 2 slots or more, one that is kept and one in which a newer "
                        "batch is filled, got 1");
    }

    /// The newest batch that there is, which may be the same as before; the first call waits for one. Empty where the
    /// source has ended without any. Throws `Error` as `Source::next` and `Source::newest` do; what there was is kept.
    const value_type& next() {
        if (value_type newer = current_ ? source_->newest() : source_->next())
            current_ = std::move(newer);
        return current_;
    }
    /// Forgets the batch, and has the source start again from batch 0.
    void rewind() {
        current_.reset();
        source_->rewind();
    }
    /// Whose batches they are.
    const From& source() const noexcept { return *source_; }

private:
    From* source_;
    value_type current_;
};

/// For `zip`: in each step the newest batch of `source` at that time, instead of the next one. It may be the same one in several
/// steps, and those between two that are taken count as `source.dropped()`. The first step waits for one. When the source ends, its
/// last batch stays the newest. To have the newest for sure, let the source drop the oldest, and give it more slots than batches are
/// under way and workers fill, and two more: see `SourceOptions::when_ahead`. Throws `Error` where it has one slot alone.
template <class From>
Latest<From> latest(From& source) {
    return Latest<From>(source);
}

/// Makes a `Zipped` of two batches.
struct MakeZipped {
    /// Refers to both.
    template <class First, class Second>
    Zipped<First, Second> operator()(const First& first, const Second& second) const noexcept {
        return {first, second};
    }
};

/// Batches of two sources, one of each in a step, for a pipeline: what `zip` makes. What is said of `Source` holds for how it is
/// gone through, and for its batches: a slot of either source is filled again when no handle holds a batch with it, and all work that
/// was handed such a batch has read it. The sources must outlive it; batches may outlive it.
///
/// The thread that goes through it is the one for both sources. Can be neither copied nor moved. `Second` is a pointer to the second
/// source, or a `Latest` of it.
template <class First, class Second, class Combine>
class Zip {
    using FirstBatch = typename First::value_type;
    using SecondBatch = typename std::remove_pointer_t<Second>::value_type;
    using Batch = std::remove_cvref_t<std::invoke_result_t<Combine&, const typename FirstBatch::batch_type&,
                                                           const typename SecondBatch::batch_type&>>;

public:
    /// Whose streams read the batches.
    using backend = typename First::backend;
    /// What `next` gives.
    using value_type = SourceBatch<Batch, backend>;

    /// Asks for nothing yet. Called by `zip`. Throws `Error` where both take from one source.
    Zip(First& first, Second second, Combine combine)
        : first_(&first), second_(std::move(second)), combine_(std::move(combine)),
          places_(places_of(first), most_held()) {
        detail::require_callable("zip: combine", combine_);
        if (detail::share_source(first, this->second()))
            throw Error("zip: the second source is the first one, or takes from the same one, so that a step "
                        "would have two batches of it; expected two sources with batches of their own");
    }
    Zip(const Zip&) = delete;            ///< Cannot be copied.
    Zip& operator=(const Zip&) = delete; ///< Cannot be assigned.

    /// The next batch of both, or an empty one when one of the sources has ended. Throws `Error` as the sources do, and what `combine`
    /// throws. What has been taken of a source by then is kept for the next call, see `left_over`.
    [[nodiscard]] value_type next() {
        if (!of_first_)
            of_first_ = first_->next();
        if (!of_first_)
            return {};
        if constexpr (shares_second) {
            const SecondBatch& newest = second_.next();
            return newest ? places_.hand_out_both(of_first_, newest, true, combine_) : value_type();
        } else {
            if (!of_second_)
                of_second_ = second_->next();
            if (!of_second_)
                return {};
            value_type joined = places_.hand_out_both(of_first_, of_second_, false, combine_);
            of_second_.reset();
            return joined;
        }
    }

    /// The first source's batch that `next` has taken, and that has come to no step: since the second source has ended, or something
    /// was thrown. Empty where there is none. If it is not asked for, `next` begins with it. What was taken of the second source
    /// as well, when `combine` threw, is given back, so that the two stay in step.
    [[nodiscard]] FirstBatch left_over() noexcept {
        if constexpr (!shares_second)
            of_second_.reset();
        return std::move(of_first_);
    }

    /// Gives back what it has taken, and rewinds both sources.
    void rewind() {
        of_first_.reset();
        first_->rewind();
        if constexpr (shares_second) {
            second_.rewind();
        } else {
            of_second_.reset();
            second_->rewind();
        }
        places_.start_over();
    }
    /// Whether one of its sources is `other`, or one that `other` takes from.
    template <class Other>
    bool takes_from(const Other& other) const noexcept {
        return detail::share_source(*first_, other) || detail::share_source(second(), other);
    }

    /// How many batches `next` would return right now without waiting, as `Source::filled`.
    std::size_t filled() const noexcept {
        const std::size_t of_first = first_->filled() + (of_first_ ? 1u : 0u);
        if constexpr (shares_second) {
            return of_first;
        } else {
            const std::size_t of_second = second_->filled() + (of_second_ ? 1u : 0u);
            return of_first < of_second ? of_first : of_second;
        }
    }
    /// How many of its batches can be held at a time.
    std::size_t slots() const noexcept { return places_.most_held(); }
    /// In how many places these lie: as many as the first source has, which may be more.
    std::size_t places() const noexcept { return places_.size(); }

    /// Over the batches.
    using Iterator = SourceIterator<Zip>;
    /// Goes on from where the sources stand: `for (const auto& batch : both)`.
    Iterator begin() { return Iterator(*this); }
    /// Behind the last batch.
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    static constexpr bool shares_second = !std::is_pointer_v<Second>;
    static_assert(std::is_same_v<backend, typename std::remove_pointer_t<Second>::backend>,
                  "sluice::zip: both sources must be for streams of the same backend");
    static std::size_t places_of(const First& first) noexcept {
        if constexpr (requires { first.places(); })
            return first.places();
        else
            return first.slots();
    }
    const auto& second() const noexcept {
        if constexpr (shares_second)
            return second_.source();
        else
            return *second_;
    }
    std::size_t most_held() const noexcept {
        std::size_t most = first_->slots();
        if constexpr (!shares_second)
            most = second_->slots() < most ? second_->slots() : most;
        return most;
    }

    First* first_;
    Second second_;
    Combine combine_;
    detail::JoinedPlaces<Batch, backend> places_;
    FirstBatch of_first_;
    // Of a source that is not shared.
    [[no_unique_address]] std::conditional_t<shares_second, NoState, SecondBatch> of_second_;
};

/// Batches of two sources, one of each in a step; ends with the source that ends first: `for (const auto& batch : zip(images, labels))
/// pipeline.submit(batch);`, where stages take a `const Zipped<Image, Label>&`. With `combine`, they take what
/// `combine(const First&, const Second&)` makes of the two, which may refer to them. For more sources, zip what this makes with another.
/// \code
/// auto both = sluice::zip(camera, sluice::latest(poses)); // each image with the newest pose
/// for (const auto& batch : both) pipeline.submit(batch);
/// \endcode
template <class First, class Second, class Combine = MakeZipped>
Zip<First, Second*, Combine> zip(First& first, Second& second, Combine combine = {}) {
    return {first, &second, std::move(combine)};
}
/// The same with the newest batch of the second source.
template <class First, class Second, class Combine = MakeZipped>
Zip<First, Latest<Second>, Combine> zip(First& first, Latest<Second>&& second, Combine combine = {}) {
    return {first, std::move(second), std::move(combine)};
}
/// Does not compile: it holds a batch, and would have to be copied.
template <class First, class Second, class Combine = MakeZipped>
auto zip(First&, Latest<Second>&, Combine = {}) {
    static_assert(sizeof(First) == 0,
                  "sluice::zip: a latest(...) that has a name is moved: zip(a, std::move(newest)); or it is "
                  "made where it is zipped: zip(a, latest(b))");
}

namespace detail {
template <class T>
inline constexpr bool is_temporary_source = !std::is_lvalue_reference_v<T>;
template <class From>
inline constexpr bool is_temporary_source<Latest<From>> = false;
} // namespace detail

/// Does not compile: a temporary would be gone before its batches are.
template <class First, class Second, class Combine = MakeZipped>
requires(detail::is_temporary_source<First> ||
         detail::is_temporary_source<Second>) auto zip(First&&, Second&&, Combine = {}) {
    static_assert(sizeof(First) == 0,
                  "sluice::zip: a source is a temporary, and must outlive what is zipped: give it a name, as "
                  "in auto two = zip(a, b); auto three = zip(two, c);");
}

/// Does not compile: the first source says how many steps there are, so it cannot be `latest`.
template <class First, class... Others>
auto zip(Latest<First>, Others&&...) {
    static_assert(sizeof(First) == 0,
                  "sluice::zip: latest(...) comes second; the first source says how many steps there are");
}

} // namespace sluice
