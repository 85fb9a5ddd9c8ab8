// Bodies of concatenate.hpp.
#pragma once

#include <string>

#include <sluice/ragged/detail/reshaping.hpp>

namespace sluice::ragged {

namespace detail {

/// The operands of a plan that joins them; a view each would be more than a task has room for.
template <class T>
struct Parts {
    struct Part {
        const T* values;
        const std::int64_t* offsets;
        const RaggedCounts* counts;

        SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
            return row < counts->rows ? offsets[row + 1] - offsets[row] : 0;
        }
    };

    Part part[most_parts];
    int count;

    SLUICE_HOST_DEVICE std::int64_t limit() const { return unlimited; }
    SLUICE_HOST_DEVICE Refused refused() const {
        Refused most;
        for (int k = 0; k < count; ++k) {
            if (part[k].counts->refused > most.needed)
                most = Refused::by(*part[k].counts);
        }
        return most;
    }
    /// Of the part that has the most.
    SLUICE_HOST_DEVICE std::int64_t most_rows() const {
        std::int64_t most = 0;
        for (int k = 0; k < count; ++k)
            most = larger(most, part[k].counts->rows);
        return most;
    }
    bool aligned(std::size_t bytes) const {
        bool all = true;
        for (int k = 0; k < count; ++k)
            all = all && lies_at(part[k].values, bytes);
        return all;
    }
};

template <class T>
struct RowsInTurn : Parts<T> {
    SLUICE_HOST_DEVICE std::int64_t rows() const {
        std::int64_t sum = 0;
        for (int k = 0; k < this->count; ++k)
            sum += this->part[k].counts->rows;
        return sum;
    }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        const int k = find(row);
        return this->part[k].offsets[row + 1] - this->part[k].offsets[row];
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        const int k = find(row);
        return this->part[k].values + this->part[k].offsets[row] + position;
    }

private:
    /// The part that a row is in; `row` becomes its number there.
    SLUICE_HOST_DEVICE int find(std::int64_t& row) const {
        int k = 0;
        for (; k + 1 < this->count && row >= this->part[k].counts->rows; ++k)
            row -= this->part[k].counts->rows;
        return k;
    }
};

template <class T>
struct RowsJoined : Parts<T> {
    SLUICE_HOST_DEVICE std::int64_t rows() const { return this->most_rows(); }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        std::int64_t sum = 0;
        for (int k = 0; k < this->count; ++k)
            sum += this->part[k].length(row);
        return sum;
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        int k = 0;
        for (; k + 1 < this->count && position >= this->part[k].length(row); ++k)
            position -= this->part[k].length(row);
        return this->part[k].values + this->part[k].offsets[row] + position;
    }
};

template <class T>
struct RowsInterleaved : Parts<T> {
    SLUICE_HOST_DEVICE std::int64_t rows() const { return this->most_rows() * this->count; }
    SLUICE_HOST_DEVICE std::int64_t length(std::int64_t row) const {
        const std::int64_t theirs = quotient(row, this->count);
        return this->part[row - theirs * this->count].length(theirs);
    }
    SLUICE_HOST_DEVICE const T* source(std::int64_t row, std::int64_t position) const {
        const std::int64_t theirs = quotient(row, this->count);
        const auto& mine = this->part[row - theirs * this->count];
        return mine.values + mine.offsets[theirs] + position;
    }
};

template <class Plan, AnyStream S, class T, Backend B>
void concatenate(const S& given, const char* what, RaggedBatch<T, B>& out,
                 std::span<const RaggedView<const T>> parts, RaggedWorkspace<B>& workspace) {
    const BasicStreamRef<B> stream = ref_for(given, what, &workspace, out, parts);
    if (parts.empty() || parts.size() > most_parts) {
        throw Error("ragged::" + std::string(what) + ": " +
                    sluice::detail::counted_were(parts.size(), "batch") + " given, expected 1 to " +
                    std::to_string(most_parts));
    }
    const RaggedTarget<T> target = out.target();
    Plan plan{};
    for (const RaggedView<const T>& part : parts) {
        require_apart(what, target, part);
        plan.part[plan.count++] = {part.values(), part.offsets(), part.counts_pointer()};
    }
    RaggedScratch<B> scratch = workspace.scratch();
    for (const RaggedView<const T>& part : parts)
        tell_rows(stream, what, part);
    tell_made(stream, what, target, workspace);
    Engine<B>::make(stream, target, plan, scratch);
}

} // namespace detail

template <AnyStream S, class T>
void concatenate_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<std::span<const RaggedView<const T>>> parts,
                      RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::concatenate<detail::RowsInTurn<T>>(stream, "concatenate_rows", out, parts, workspace);
}
template <AnyStream S, class T>
void concatenate_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                        std::type_identity_t<std::span<const RaggedView<const T>>> parts,
                        RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::concatenate<detail::RowsJoined<T>>(stream, "concatenate_within", out, parts, workspace);
}
template <AnyStream S, class T>
void stack(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
           std::type_identity_t<std::span<const RaggedView<const T>>> parts,
           RaggedWorkspace<BackendOf<S>>& workspace) {
    detail::concatenate<detail::RowsInterleaved<T>>(stream, "stack", out, parts, workspace);
}

template <AnyStream S, class T>
void concatenate_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
                      RaggedWorkspace<BackendOf<S>>& workspace) {
    concatenate_rows(stream, out, std::span<const RaggedView<const T>>(parts), workspace);
}
template <AnyStream S, class T>
void concatenate_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                        std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
                        RaggedWorkspace<BackendOf<S>>& workspace) {
    concatenate_within(stream, out, std::span<const RaggedView<const T>>(parts), workspace);
}
template <AnyStream S, class T>
void stack(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
           std::type_identity_t<std::initializer_list<RaggedView<const T>>> parts,
           RaggedWorkspace<BackendOf<S>>& workspace) {
    stack(stream, out, std::span<const RaggedView<const T>>(parts), workspace);
}

} // namespace sluice::ragged
