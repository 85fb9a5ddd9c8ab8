// What tests of captures of host streams share: captures that must fail, and what is left of them.
#pragma once

#include <cstdint>
#include <string>

#include "backend/host_graph.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace sluice::test {

/// Captures `work()`, which must fail somewhere, and gives what the end says. Nothing is left behind.
template <class F>
std::string reason_of(const HostStream& stream, F&& work, CaptureMode mode = CaptureMode::this_thread) {
    const std::uint64_t graphs = Host::counts().graphs.alive;
    Host::begin_capture(stream.get(), mode);
    work();
    const std::string text = text_of([&] { (void)Host::end_capture(stream.get()); });
    CHECK_FALSE(Host::is_capturing(stream.get()));
    CHECK(Host::counts().graphs.alive == graphs);
    int ran = 0; // the stream is as good as before
    stream.enqueue([&ran] { ++ran; });
    stream.sync();
    CHECK(ran == 1);
    return text;
}

/// That `call()` throws within a capture of `stream`, for `why`, which the end repeats and so does any later call.
template <class F>
void check_invalidates(const HostStream& stream, F&& call, const std::string& why,
                       CaptureMode mode = CaptureMode::this_thread) {
    const std::string text = reason_of(
        stream,
        [&] {
            stream.enqueue([] {});
            CHECK(contains(text_of(call), why));
            CHECK(contains(text_of([&] { stream.enqueue([] {}); }), why));
        },
        mode);
    CHECK(contains(text, why));
    CHECK(contains(text, "invalid"));
}

} // namespace sluice::test
