// A value moved into itself, which compilers warn of where they see it.
#pragma once

#include <utility>

namespace sluice::test {

template <class T>
void move_into_itself(T& value) {
    T& same = value;
    value = std::move(same);
}

} // namespace sluice::test
