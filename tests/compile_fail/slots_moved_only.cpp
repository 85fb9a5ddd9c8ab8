// A slot maker that can only be moved, given by its name.
// FIRST: sluice::Slots: a slot maker that can only be moved is moved here
#include <sluice/sluice.hpp>

#include <memory>
#include <utility>

void run() {
    auto own = std::make_unique<int>(1);
    auto make = [own = std::move(own)](int slot) { return *own + slot; };
#if MISUSE
    const sluice::Slots slots{make};
#else
    const sluice::Slots slots{std::move(make)};
#endif
    (void)slots;
}
