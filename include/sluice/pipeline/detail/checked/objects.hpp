/// \file
/// What a source or a pipeline of a checked backend tells of what its slots own.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/pipeline/detail/checked/visit_memory.hpp>

namespace sluice::detail {

/// A slot maker that notes what each slot allocates.
template <class Make>
class ListenedMaker {
public:
    explicit ListenedMaker(Make& make) : make_(make) {}
    decltype(auto) operator()(int slot) {
        listening_.begin_list();
        return make_(slot);
    }
    const List<checked::Range>& list(std::size_t slot) { return listening_.list(slot + 1); }

private:
    Make& make_;
    checked::Listening listening_;
};

/// Tells which memory an object has: what was allocated when it was made, and what it shows.
template <class T>
void tell_of_object(const T& object, List<checked::Range> memory, const std::string& of, std::size_t slot) {
    const auto add = [&](const checked::Range& range, bool) { memory.push_back(range); };
    visit_memory(object, add);
    checked::object_made(&object, memory.data(), memory.size(), of.c_str(), static_cast<int>(slot));
}

} // namespace sluice::detail
