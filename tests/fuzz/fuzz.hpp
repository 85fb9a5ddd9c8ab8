// A fuzz target: arbitrary bytes, and what must hold whatever they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace sluice::fuzz {

using Bytes = std::span<const std::uint8_t>;
using Target = void (*)(Bytes input);

/// Ends the program, which is how a fuzzer is told.
[[noreturn]] inline void fail(const char* what, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
    std::abort();
}

/// Notes the target for the driver of driver.cpp.
struct Registration {
    Registration(const char* name, Target target);
};

/// Takes numbers off the front of an input; zeros when it is used up.
class Reader {
public:
    explicit Reader(Bytes bytes) : bytes_(bytes) {}
    bool empty() const { return bytes_.empty(); }
    std::size_t left() const { return bytes_.size(); }
    std::uint8_t byte() {
        if (bytes_.empty())
            return 0;
        const std::uint8_t value = bytes_[0];
        bytes_ = bytes_.subspan(1);
        return value;
    }
    /// Mostly small, of either sign, and now and then far out.
    std::int64_t number() {
        const std::uint8_t kind = byte();
        if (kind < 224)
            return static_cast<std::int64_t>(kind % 32) - (kind >= 192 ? 16 : 0);
        std::uint64_t value = 0;
        for (int i = 0; i < kind % 8 + 1; ++i)
            value = value << 8 | byte();
        return static_cast<std::int64_t>(kind >= 240 ? ~value : value);
    }
    Bytes rest() const { return bytes_; }

private:
    Bytes bytes_;
};

} // namespace sluice::fuzz

#define SLUICE_FUZZ_EXPECT(condition)                                                                        \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            sluice::fuzz::fail(#condition, __FILE__, __LINE__);                                              \
    } while (false)

// The body of the target NAME follows. Under libFuzzer each is a program of its own.
#if defined(SLUICE_LIBFUZZER)
#define SLUICE_FUZZ_TARGET(NAME)                                                                             \
    static void NAME(sluice::fuzz::Bytes input);                                                             \
    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {                      \
        NAME({data, size});                                                                                  \
        return 0;                                                                                            \
    }                                                                                                        \
    static void NAME([[maybe_unused]] sluice::fuzz::Bytes input)
#else
#define SLUICE_FUZZ_TARGET(NAME)                                                                             \
    static void NAME(sluice::fuzz::Bytes input);                                                             \
    static const sluice::fuzz::Registration NAME##_registered(#NAME, &NAME);                                 \
    static void NAME([[maybe_unused]] sluice::fuzz::Bytes input)
#endif
