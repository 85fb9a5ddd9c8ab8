// Writing parameters on the CPU.
#include <augment/parameters.hpp>

namespace augment {

template <sluice::Backend B>
void write_parameters(sluice::BasicStreamRef<B> stream, const ParameterSource<B>& source,
                      std::type_identity_t<sluice::DeviceSpan<SampleParameters, B>> table) {
    const int count = static_cast<int>(detail::parameter_count(table.size()));
    source.require_count(count);
    stream.enqueue([source, data = table.data(), count] {
        for (int i = 0; i < count; ++i)
            data[i] = source[i];
    });
}

template void write_parameters(sluice::HostStreamRef, const ParameterSource<sluice::Host>&,
                               sluice::DeviceSpan<SampleParameters, sluice::Host>);

} // namespace augment
