// Row operations on CUDA tensors.
#include "current_stream.hpp"
#include "rows_kernels.hpp"
#include "rows_ops.hpp"

namespace sluice_torch {
namespace {

struct Gpu {
    static constexpr bool on_cpu = false;
    static constexpr std::int64_t counted = 5; ///< numbers of 64 bits in `sluice::RaggedCounts`

    /// Memory of PyTorch's allocator, which is reused in the order of the current stream.
    static Tensor counts(const Tensor& like) { return empty_on(like, {counted}, ScalarType::Long); }
    static sluice::RaggedCounts* in(const Tensor& counts) {
        static_assert(sizeof(sluice::RaggedCounts) == counted * sizeof(std::int64_t));
        return reinterpret_cast<sluice::RaggedCounts*>(counts.mutable_data_ptr());
    }

    template <class T>
    static void sum(const Tensor& like, const RowsIn<T>& rows, T* out) {
        const OnDeviceOf device(like);
        if (rows.size <= most_at_once)
            return launch_row_sum(device.stream(), rows, nullptr, out);
        const Tensor held = counts(like);
        launch_row_sum(device.stream(), rows, in(held), out);
    }
    template <class T>
    static void max(const Tensor& like, const RowsIn<T>& rows, T* out, std::int64_t* positions) {
        const OnDeviceOf device(like);
        if (rows.size <= most_at_once)
            return launch_row_max(device.stream(), rows, nullptr, out, positions);
        const Tensor held = counts(like);
        launch_row_max(device.stream(), rows, in(held), out, positions);
    }
    template <class T>
    static void softmax(const Tensor& like, const RowsIn<T>& rows, T* out) {
        const OnDeviceOf device(like);
        const Tensor held = counts(like);
        launch_row_softmax(device.stream(), rows, in(held), out);
    }
    template <class T>
    static void sort(const Tensor& like, const RowsIn<T>& rows, T* out, std::int64_t* positions,
                     bool descending) {
        const OnDeviceOf device(like);
        const Tensor held = counts(like);
        const std::size_t bytes = row_sort_bytes(rows);
        const Tensor memory = empty_on(like, {static_cast<std::int64_t>(bytes)}, ScalarType::Byte);
        launch_row_sort(device.stream(), rows, in(held), out, positions, descending,
                        static_cast<std::byte*>(memory.mutable_data_ptr()), bytes);
    }
    template <class Body, class T>
    static void map(const Tensor& like, const RowsIn<T>& rows, const Body& body) {
        const OnDeviceOf device(like);
        launch_row_map(device.stream(), rows, body);
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CUDA, library) { register_rows<Gpu>(library); }

} // namespace sluice_torch
