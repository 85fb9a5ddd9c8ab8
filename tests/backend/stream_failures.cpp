// What callables of streams have thrown, where handles come again. CUDA's backend keeps it so; no device is needed.
#include <sluice/backend/detail/stream_failures.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/doctest.hpp"

namespace backend_stream_failures {

using sluice::detail::StreamFailures;

std::exception_ptr error(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }
std::string text_of(const std::exception_ptr& thrown) {
    if (thrown == nullptr)
        return {};
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
        return exception.what();
    }
}

const int places[2] = {};
const StreamFailures::StreamId stream = &places[0], other = &places[1];

TEST_CASE("a stream fails with what a callable threw first, until it is cleared") {
    StreamFailures failures;
    const auto record = failures.record_of(stream);
    CHECK_FALSE(failures.any());
    CHECK_FALSE(record->skips(false));
    failures.keep(*record, error("first"));
    failures.keep(*record, error("second"));
    CHECK(failures.any());
    CHECK(record->skips(false));
    CHECK(record->skips(true));
    CHECK(text_of(failures.of(stream)) == "first");
    CHECK(failures.of(other) == nullptr);
    failures.clear(other);
    CHECK(failures.any());
    failures.clear(stream);
    CHECK_FALSE(failures.any());
    CHECK_FALSE(record->skips(false));
    CHECK(failures.of(stream) == nullptr);
    failures.keep(*record, error("third"));
    CHECK(text_of(failures.of(stream)) == "third");
}

TEST_CASE("the next stream with a handle is not blamed for what the last one's callables throw") {
    StreamFailures failures;
    const auto late = failures.record_of(stream); // of a callable that has not run yet
    failures.forget(stream);
    const auto next = failures.record_of(stream);
    CHECK(next.get() != late.get());
    failures.keep(*late, error("late"));
    CHECK_FALSE(failures.any());
    CHECK(failures.of(stream) == nullptr);
    CHECK_FALSE(next->skips(false));
    CHECK(late->skips(false)); // the same stream's later callables
}

TEST_CASE("a failure goes with its stream") {
    StreamFailures failures;
    const auto record = failures.record_of(stream);
    const auto of_other = failures.record_of(other);
    failures.keep(*record, error("first"));
    failures.keep(*of_other, error("other's"));
    failures.forget(stream);
    CHECK(failures.any());
    CHECK(failures.of(stream) == nullptr);
    CHECK(text_of(failures.of(other)) == "other's");
    CHECK(record->skips(false));
    failures.forget(other);
    CHECK_FALSE(failures.any());
    failures.forget(other); // which has none
    CHECK_FALSE(failures.any());
}

TEST_CASE("callables of a graph come again after the stream that they were captured on has gone") {
    StreamFailures failures;
    const auto captured = failures.record_of(stream);
    failures.keep(*captured, error("in a replay"));
    CHECK(captured->skips(true));
    failures.forget(stream);
    CHECK_FALSE(captured->skips(true)); // it could not be cleared
    failures.keep(*captured, error("in a later replay"));
    CHECK_FALSE(captured->skips(true));
    CHECK_FALSE(failures.any());
    CHECK(failures.of(stream) == nullptr);
}

TEST_CASE("streams that go leave nothing behind") {
    StreamFailures failures;
    for (int round = 0; round < 1000; ++round) {
        auto record = failures.record_of(stream);
        CHECK(failures.record_of(stream).get() == record.get());
        if (round % 3 == 0)
            failures.keep(*record, error("thrown"));
        failures.forget(stream);
        if (round % 2 == 0)
            failures.keep(*record, error("late"));
        const sluice::detail::Watched<StreamFailures::Record> watch = record;
        record = nullptr;
        CHECK_FALSE(watch.is_there());
    }
    CHECK_FALSE(failures.any());
}

TEST_CASE("threads may keep, ask and forget at the same time") {
    StreamFailures failures;
    std::atomic<bool> over{false};
    std::thread asks([&] {
        while (!over) {
            if (failures.any())
                (void)failures.of(stream);
            failures.clear(other);
        }
    });
    for (int round = 0; round < 2000; ++round) {
        const auto record = failures.record_of(stream);
        std::thread throws;
        if (round % 100 == 0)
            throws = std::thread([&] { failures.keep(*record, error("thrown")); });
        failures.keep(*failures.record_of(other), error("other's"));
        failures.forget(stream);
        if (throws.joinable())
            throws.join();
        CHECK(failures.of(stream) == nullptr);
    }
    over = true;
    asks.join();
    failures.clear(other);
    CHECK_FALSE(failures.any());
}

} // namespace backend_stream_failures
