/// \file
/// What the executors do with batches, whatever their type.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/batch_key.hpp>

namespace sluice::detail {

template <Backend B>
class CoreBase;

/// What is done with a batch of whatever type, for itself.
struct BatchOps {
    bool (*append_key)(KeyBytes& key, const void* batch);
    /// Bytes that tell the batch from others of its type, as `told_by_bytes` says; 0: they do not.
    std::size_t raw_bytes;
    bool (*same_bytes)(const void* a, const void* b);
    /// Bytes of a copy that serves instead of the batch; 0: none does.
    std::size_t copied_bytes;
    void (*copy)(void* to, const void* batch);

    template <class Batch>
    static const BatchOps& of() noexcept {
        constexpr std::size_t copied = std::is_trivially_copyable_v<Batch> ? sizeof(Batch) : 0;
        static constexpr BatchOps ops{.append_key = &key_of<Batch>,
                                      .raw_bytes = told_by_bytes<Batch>() ? sizeof(Batch) : 0,
                                      .same_bytes = &same_bytes_of<sizeof(Batch)>,
                                      .copied_bytes = copied,
                                      .copy = &copy_of<copied>};
        return ops;
    }

private:
    template <class Batch>
    static bool key_of(KeyBytes& key, const void* batch) {
        append_scalar(key, static_cast<const void*>(&type_tag<Batch>));
        return detail::append_key(key, *static_cast<const Batch*>(batch));
    }
    template <std::size_t Bytes>
    static bool same_bytes_of(const void* a, const void* b) {
        return std::memcmp(a, b, Bytes) == 0;
    }
    template <std::size_t Bytes>
    static void copy_of(void* to, const void* batch) {
        std::memcpy(to, batch, Bytes);
    }
};

/// A batch, whatever its type, as a pipeline's stages take it.
template <Backend B>
struct GivenBatch {
    /// Calls one stage of the pipeline that `core` is of.
    using Run = void (*)(CoreBase<B>& core, BasicStreamRef<B> stream, std::size_t number, const void* batch);

    const void* value = nullptr;
    const BatchOps* ops = nullptr;
    const Run* runs = nullptr; ///< a stage each

    void run(CoreBase<B>& core, std::size_t stage, BasicStreamRef<B> stream, std::size_t number) const {
        runs[stage](core, stream, number, value);
    }

    /// `Core` is the core with all types.
    template <class Core, class Batch>
    static GivenBatch of(const Batch& batch) noexcept {
        static constexpr auto runs = runs_of<Core, Batch>(std::make_index_sequence<Core::stages>{});
        return {&batch, &BatchOps::of<Batch>(), runs.data()};
    }

private:
    template <class Core, class Batch, std::size_t Index>
    static void run_stage(CoreBase<B>& core, BasicStreamRef<B> stream, std::size_t number,
                          const void* batch) {
        static_cast<Core&>(core).template run<Index>(stream, number, *static_cast<const Batch*>(batch));
    }
    template <class Core, class Batch, std::size_t... Is>
    static constexpr std::array<Run, Core::stages> runs_of(std::index_sequence<Is...>) {
        return {&run_stage<Core, Batch, Is>...};
    }
};

} // namespace sluice::detail
