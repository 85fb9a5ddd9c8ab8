// Which callables a stage takes, and which backend each of them is for.
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/doctest.hpp"

namespace pipeline_callables {

using namespace sluice;

namespace {

using Log = std::vector<std::string>;

struct Cell {
    int value = 0;
};

// One of each kind, for the Host backend.
void function(HostStreamRef, const int&, Cell& out) { out.value = 1; }
void function_noexcept(HostStreamRef, const int&, Cell& out) noexcept { out.value = 2; }
void function_native(host::Queue*, const int&, Cell& out) { out.value = 3; }
struct Functor {
    void operator()(HostStreamRef, const int&, Cell& out) { out.value = 4; }
};
struct ConstFunctor {
    void operator()(const HostStreamRef&, const int&, Cell& out) const noexcept { out.value = 5; }
};
struct NoexceptFunctor {
    int operator()(HostStreamRef, const int&, Cell& out) noexcept { return out.value = 6; }
};

template <class F>
using backend_of = typename decltype(Stage{"stage", std::declval<F>()})::backend;

// The value that `callable` puts into its slot, as the first of two stages on the host.
template <class S>
int value_from(S stage) {
    int seen = 0;
    Stage last{"last", [&seen](HostStreamRef stream, Cell& in) {
                   stream.enqueue([&seen, value = in.value] { seen = value; });
               }};
    TwoStreamPipeline pipeline{stage, last, [](int) { return Cell{}; }};
    pipeline.submit(0);
    pipeline.finish();
    return seen;
}

} // namespace

TEST_CASE("Callables: functions, functors and lambdas are for the backend of the stream that they take") {
    CHECK(value_from(Stage{"function", function}) == 1);
    CHECK(value_from(Stage{"function", &function_noexcept}) == 2);
    CHECK(value_from(Stage{"native", function_native}) == 3);
    CHECK(value_from(Stage{"functor", Functor{}}) == 4);
    CHECK(value_from(Stage{"functor", ConstFunctor{}}) == 5);
    CHECK(value_from(Stage{"functor", NoexceptFunctor{}}) == 6);
    CHECK(value_from(
              Stage{"std::function", std::function<void(HostStreamRef, const int&, Cell&)>(function)}) == 1);
    int calls = 0;
    CHECK(value_from(Stage{
              "lambda", [calls](HostStreamRef, int, Cell& out) mutable { out.value = 7 + calls++; }}) == 7);
    CHECK(calls == 0);
}

TEST_CASE("Callables: a generic one is for the default backend, or for the one that the options name") {
    const auto generic = [](auto stream, const auto&, Cell& out) {
        out.value = std::is_same_v<decltype(stream), HostStreamRef> ? 8 : 0;
    };
    CHECK(value_from(Stage{"generic", generic, StageOptions<Host>{}}) == 8);
    CHECK(std::is_same_v<backend_of<decltype(generic)>, DefaultBackend>);
}

TEST_CASE("Callables: the backend is deduced for every form of the stream") {
    CHECK(std::is_same_v<backend_of<decltype(&function)>, Host>);
    CHECK(std::is_same_v<backend_of<decltype(&function_native)>, Host>);
    CHECK(std::is_same_v<backend_of<ConstFunctor>, Host>);
    CHECK(std::is_same_v<backend_of<void (*)(StreamRef, int)>, DefaultBackend>);
#if SLUICE_HAS_CUDA
    CHECK(std::is_same_v<backend_of<void (*)(cudaStream_t, int)>, Cuda>);
    CHECK(std::is_same_v<backend_of<void (*)(CudaStreamRef) noexcept>, Cuda>);
    CHECK(std::is_same_v<backend_of<std::function<void(cudaStream_t, int)>>, Cuda>);
    const auto lambda = [](CudaStreamRef, int) {};
    CHECK(std::is_same_v<backend_of<decltype(lambda)>, Cuda>);
#endif
}

TEST_CASE("Callables: what a stage returns is ignored, and a batch is passed on as it is") {
    struct Batch {
        explicit Batch(int n) : number(n) {}
        Batch(const Batch&) = delete;
        Batch& operator=(const Batch&) = delete;
        int number;
    };
    std::vector<const Batch*> seen;
    Pipeline pipeline{Stages{Stage{"only",
                                   [&](HostStreamRef, const Batch& batch) {
                                       seen.push_back(&batch);
                                       return batch.number;
                                   }}},
                      Slots{}};
    const Batch first(1), second(2);
    pipeline.submit(first);
    pipeline.submit(second);
    pipeline.finish();
    CHECK(seen == std::vector{&first, &second});
}

TEST_CASE("Callables: one pipeline may be given batches of several types") {
    Log log;
    const auto note = [&](auto, const auto& batch) {
        log.push_back(std::is_same_v<decltype(batch), const int&> ? "int" : "text");
    };
    Pipeline pipeline{Stages{Stage{"note", note, StageOptions<Host>{}}}, Slots{}};
    const std::string text = "batch";
    pipeline.submit(1);
    pipeline.submit(text).stays();
    pipeline.finish();
    CHECK(log == Log{"int", "text"});
}

TEST_CASE("Callables: slots are made in the order of the rings, by the constructing thread, once each") {
    Log made;
    Stage first{"first", [](HostStreamRef, int, Cell&) {}};
    Stage second{"second", [](HostStreamRef, Cell&, std::string&) {}};
    Stage third{"third", [](HostStreamRef, std::string&) {}};
    const auto make_cell = [&](int slot) {
        made.push_back("cell " + std::to_string(slot));
        return Cell{};
    };
    const auto make_text = [&](int slot) {
        made.push_back("text " + std::to_string(slot));
        return std::string();
    };
    Pipeline pipeline{Stages{first, second, third}, Slots{make_cell, make_text}, {.slots = 3}};
    for (int batch = 0; batch < 10; ++batch)
        pipeline.submit(batch);
    pipeline.finish();
    CHECK(made == Log{"cell 0", "cell 1", "cell 2", "text 0", "text 1", "text 2"});
}

TEST_CASE(
    "the stage whose callable a thread is in has its name, the first one too, and outside there is none") {
    std::vector<std::string> seen;
    const auto note = [&] {
        const std::string* const stage = detail::CallingPipeline::stage();
        seen.push_back(stage == nullptr ? "none" : *stage);
    };
    Stage first{"first", [&](HostStreamRef, const int&, int&) { note(); }};
    Stage second{"second", [&](HostStreamRef, const int&) { note(); }};
    Pipeline pipeline{Stages{first, second}, Slots{[](int) { return 0; }}};
    note();
    pipeline.submit(1);
    note();
    pipeline.finish();
    CHECK(seen == std::vector<std::string>{"none", "first", "second", "none"});
}

} // namespace pipeline_callables
