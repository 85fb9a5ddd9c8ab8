// What an Error carries, and how its sentence reads.
#include <exception>
#include <string>
#include <type_traits>

#include <sluice/backend/error.hpp>

#include "support/doctest.hpp"

namespace backend_error {

using namespace sluice;

static_assert(std::is_base_of_v<std::runtime_error, Error>);
static_assert(std::is_copy_constructible_v<Error>);

TEST_CASE("an error with a message alone") {
    const Error error("batch size is 0; it must be at least 1");
    CHECK(error.what() == std::string("batch size is 0; it must be at least 1"));
    CHECK(error.call().empty());
    CHECK(error.name().empty());
    CHECK(error.stage().empty());
    CHECK_FALSE(error.batch().has_value());
}

TEST_CASE("an error of a backend's call names the call, the error and the place") {
    const Error error("cudaFree(memory)", "cudaErrorInvalidValue", "invalid argument", "file.cpp", 12);
    CHECK(error.what() ==
          std::string("cudaFree(memory) failed: cudaErrorInvalidValue (invalid argument) at file.cpp:12"));
    CHECK(error.call() == "cudaFree(memory)");
    CHECK(error.name() == "cudaErrorInvalidValue");

    const Error terse("open", "ENOENT", "", "file.cpp", 12);
    CHECK(terse.what() == std::string("open failed: ENOENT at file.cpp:12"));
}

TEST_CASE("an error in a stage names the stage and the batch besides") {
    const Error plain("call()", "badName", "because", "file.cpp", 3);
    const Error placed = plain.in_stage("encode", 7);
    CHECK(placed.what() ==
          std::string("stage 'encode', batch 7: call() failed: badName (because) at file.cpp:3"));
    CHECK(placed.stage() == "encode");
    CHECK(placed.batch() == 7);
    CHECK(placed.call() == "call()");
    CHECK(placed.name() == "badName");
    CHECK(plain.stage().empty()); // the original is as it was
}

TEST_CASE("an error that is placed, or told after other words, keeps the call and its name") {
    const Error plain("call()", "badName", "because", "file.cpp", 3);
    const std::string said = plain.what();
    const Error in_stage = plain.in_stage("encode"), in_batch = plain.in_batch(7);
    const Error after = plain.after("making slot 0 failed: "), earlier = plain.at_or_before(7);
    CHECK(in_stage.what() == "stage 'encode': " + said);
    CHECK(in_batch.what() == "batch 7: " + said);
    CHECK(after.what() == "making slot 0 failed: " + said);
    CHECK(earlier.what() ==
          "batch 7 or earlier (PipelineOptions::launch_blocking tells which, and the stage): " + said);
    for (const Error& error : {in_stage, in_batch, after, earlier}) {
        CAPTURE(error.what());
        CHECK(error.call() == "call()");
        CHECK(error.name() == "badName");
    }
    CHECK(in_stage.stage() == "encode");
    CHECK_FALSE(in_stage.batch().has_value());
    CHECK(in_batch.stage().empty());
    CHECK(in_batch.batch() == 7);
    CHECK(after.stage().empty());
    CHECK_FALSE(after.batch().has_value());
    CHECK_FALSE(earlier.batch().has_value()); // it may be another one
    CHECK(after.in_stage("encode", 7).in_stage("train").what() ==
          "stage 'train': stage 'encode', batch 7: " + std::string(after.what()));
}

TEST_CASE("messages count in the singular and in the plural") {
    CHECK(detail::counted("1", "row") == "1 row");
    CHECK(detail::counted("0", "row") == "0 rows");
    CHECK(detail::counted("21", "batch") == "21 batches");
    CHECK(detail::counted("-1", "entry") == "-1 entries");
    CHECK(detail::counted("1", "entry") == "1 entry");
    CHECK(detail::counted_were("1", "launch") == "1 launch was");
    CHECK(detail::counted_were("2", "launch") == "2 launches were");
    CHECK(detail::there_are("1", "device") == "there is 1 device");
    CHECK(detail::there_are("2", "device") == "there are 2 devices");
}

TEST_CASE("an error is caught as what it derives from") {
    try {
        throw Error("a sentence");
    } catch (const std::exception& error) {
        CHECK(error.what() == std::string("a sentence"));
    }
}

} // namespace backend_error
