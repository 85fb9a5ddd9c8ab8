// The kernels on the Host backend.
#include <array>

#include <nn/elementwise/for_each.hpp>

#include <graph_replay/kernels_bodies.hpp>

namespace graph_replay {

using KernelBackend = sluice::Host;

template <>
void iterate(sluice::HostStreamRef stream, const System& system, sluice::ConditionSetter unsolved) {
    stream.enqueue([system, unsolved] {
        if (unsolved.get() == 0)
            return;
        std::array<float, System::rows> residuals{};
        bool any_off = false;
        for (std::size_t row = 0; row < System::rows; ++row) {
            residuals[row] = detail::residual(system, row);
            any_off = any_off || detail::is_off(system, residuals[row]);
        }
        const bool more = any_off && *system.iterations < system.most;
        if (more) {
            for (std::size_t row = 0; row < System::rows; ++row)
                detail::move(system, row, residuals[row]);
            ++*system.iterations;
        }
        unsolved.set(more);
    });
}

} // namespace graph_replay

#include <graph_replay/kernels_instantiate.hpp>
