/// \file
/// What the executors do with batches, whatever their type.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <sluice/pipeline/detail/batch_key.hpp>

namespace sluice::detail {

template <class Core>
struct BatchOps;

/// A batch, whatever its type.
template <class Core>
struct GivenBatch {
    const void* value = nullptr;
    const BatchOps<Core>* ops = nullptr;

    /// Calls stage I for it.
    template <std::size_t Index>
    void run(Core& core, typename Core::Ref stream, std::size_t number) const {
        ops->run[Index](core, stream, number, value);
    }
};

/// What the executors do with a batch of whatever type.
template <class Core>
struct BatchOps {
    using Run = void (*)(Core& core, typename Core::Ref stream, std::size_t number, const void* batch);

    std::array<Run, Core::stages> run;
    bool (*append_key)(KeyBytes& key, const void* batch);
    /// Bytes that tell the batch from others of its type, as `told_by_bytes` says; 0: they do not.
    std::size_t raw_bytes;
    bool (*same_bytes)(const void* a, const void* b);
    /// Bytes of a copy that serves instead of the batch; 0: none does.
    std::size_t copied_bytes;
    void (*copy)(void* to, const void* batch);

    template <class Batch>
    static const BatchOps& of() noexcept {
        static constexpr BatchOps ops = make<Batch>();
        return ops;
    }

private:
    template <class Batch, std::size_t Index>
    static void run_stage(Core& core, typename Core::Ref stream, std::size_t number, const void* batch) {
        core.template run<Index>(stream, number, *static_cast<const Batch*>(batch));
    }
    template <class Batch>
    static bool key_of(KeyBytes& key, const void* batch) {
        append_scalar(key, static_cast<const void*>(&type_tag<Batch>));
        return detail::append_key(key, *static_cast<const Batch*>(batch));
    }
    template <class Batch>
    static constexpr BatchOps make() {
        return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            return BatchOps{.run = {&run_stage<Batch, Is>...},
                            .append_key = &key_of<Batch>,
                            .raw_bytes = told_by_bytes<Batch>() ? sizeof(Batch) : 0,
                            .same_bytes = [](const void* a,
                                             const void* b) { return std::memcmp(a, b, sizeof(Batch)) == 0; },
                            .copied_bytes = std::is_trivially_copyable_v<Batch> ? sizeof(Batch) : 0,
                            .copy =
                                [](void* to, const void* batch) {
                                    if constexpr (std::is_trivially_copyable_v<Batch>)
                                        std::memcpy(to, batch, sizeof(Batch));
                                }};
        }
        (std::make_index_sequence<Core::stages>{});
    }
};

} // namespace sluice::detail
