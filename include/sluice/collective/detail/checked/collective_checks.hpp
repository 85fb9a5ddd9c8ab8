// What a communicator tells the checker: the one interface between them.
#pragma once

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/accesses.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice::detail {

/// Of a backend that is not checked: nothing is told.
template <Backend B, bool = IsChecked<B>::value>
class CollectiveChecks {
public:
    /// A collective that is enqueued next reads `in` and writes `out`, which may be the same. Throws `Error` for a mistake.
    template <class In, class Out>
    SLUICE_ALWAYS_INLINE static void enqueued(BasicStreamRef<B>, const char* /*name*/, const In&,
                                              const Out&) noexcept {}
};
template <Backend B>
class CollectiveChecks<B, true> {
public:
    template <class In, class Out>
    void enqueued(BasicStreamRef<B> stream, const char* name, const In& in, const Out& out) const {
        writes(stream, order_, "a collective of the same communicator");
        if (static_cast<const void*>(in.data()) != out.data())
            reads(stream, in, name);
        writes(stream, out, name);
    }

private:
    DeviceBuffer<char, B> order_{
        1}; // Each collective is said to write it, so that the checker sees to their order.
};

} // namespace sluice::detail
