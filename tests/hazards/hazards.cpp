#include "hazards/hazards.hpp"

#include <algorithm>
#include <exception>

namespace sluice::test {

namespace {

bool is_at(const checked::Access& access, const Side& side, bool with_batch) {
    if (side.who == nullptr)
        return true;
    const std::string& who = access.stage.empty() ? access.operation : access.stage;
    if (who.find(side.who) == std::string::npos)
        return false;
    return !with_batch || !side.batch || access.batch == side.batch;
}

bool matches(const checked::Finding& finding, const Hazard& hazard, bool with_batches) {
    bool is_mistake = false;
    for (const Mistake mistake : hazard.mistakes)
        is_mistake = is_mistake || finding.mistake == mistake;
    if (!is_mistake)
        return false;
    if (hazard.buffer != nullptr && finding.buffer.find(hazard.buffer) == std::string::npos)
        return false;
    const auto are_at = [&](const Side& first, const Side& second) {
        return is_at(finding.first, first, with_batches) && is_at(finding.second, second, with_batches);
    };
    return are_at(hazard.first, hazard.second) ||
           (hazard.either_order && are_at(hazard.second, hazard.first));
}

std::string text_of(const Hazard& hazard) {
    const auto side = [](const Side& one) {
        std::string text = one.who == nullptr ? "anything" : one.who;
        if (one.batch)
            text += " of batch " + std::to_string(*one.batch);
        return text;
    };
    return std::string(hazard.buffer == nullptr ? "anything" : hazard.buffer) + ": " + side(hazard.first) +
           ", then " + side(hazard.second);
}

// All but waits, of which nothing is said where something else is looked for.
std::vector<checked::Finding> mistakes_found() {
    std::vector<checked::Finding> found;
    for (checked::Finding& finding : checked::findings()) {
        if (finding.mistake != Mistake::unnecessary_wait)
            found.push_back(std::move(finding));
    }
    return found;
}

// Where kernels write unseen, it is unknown what has been written.
bool is_hidden(const Hazard& hazard) {
    return KernelGraphBackend<B> && hazard.mistakes == std::vector<Mistake>{Mistake::uninitialized_read};
}

// Whether mistakes are thrown, and none are known at the beginning and at the end.
struct Judging {
    explicit Judging(bool throws) : before(checked::throw_mistakes(throws)) { checked::forget(); }
    Judging(const Judging&) = delete;
    Judging& operator=(const Judging&) = delete;
    ~Judging() {
        checked::forget();
        checked::throw_mistakes(before);
    }
    bool before;
};

// The error that a program ends with, or that the next call after it throws.
std::string error_of(const Program& program) {
    World world;
    try {
        program(world);
        fill_bytes(world.main, world.probe, 0);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

void check_sentence(const checked::Finding& finding) {
    CHECK_FALSE(finding.message.empty());
    if (finding.mistake == Mistake::race || finding.mistake == Mistake::host_race) {
        CHECK_FALSE(finding.missing_edge.empty());
        CHECK(finding.bytes > 0);
        for (const checked::Access* access : {&finding.first, &finding.second})
            CHECK(finding.message.find(access->stage) != std::string::npos);
    }
}

} // namespace

std::optional<Ref> legacy_default_stream() {
#if defined(SLUICE_TEST_CUDA)
    return Ref(cudaStream_t{});
#elif SLUICE_CHECKED
    return std::nullopt;
#else
    return Ref(Plain::legacy());
#endif
}

Pinned numbered(const char* name) {
    Pinned buffer = named<Pinned>(name);
    for (std::size_t i = 0; i < count; ++i)
        buffer[i] = static_cast<float>(i);
    return buffer;
}

World::World() {
    for (Device* buffer : {&images, &labels, &features, &weights, &workspace})
        fill_bytes(main, *buffer, 0);
    main.sync();
}

World::~World() {
    open();
    for (const Stream* stream : {&main, &side, &third}) {
        try {
            stream->sync();
        } catch (const Error&) {
            // What the program has left behind.
        }
    }
}

void World::hold(Ref stream) {
    if (!gate)
        gate.emplace();
    gate->hold(stream.get());
}

void World::open() {
    if (gate)
        gate->open();
}

void find(std::initializer_list<Hazard> hazards, const Program& program) {
    if (std::any_of(hazards.begin(), hazards.end(), is_hidden)) {
        pass(program);
        return;
    }
    {
        const Judging judging(false);
        {
            World world;
            program(world);
        }
        const auto found = mistakes_found();
        const std::string report = checked::report();
        INFO(report);
        for (const Hazard& hazard : hazards) {
            bool is_found = hazard.may_be_missing;
            for (const checked::Finding& finding : found)
                is_found = is_found || matches(finding, hazard, true);
            const std::string text = text_of(hazard);
            CHECK_MESSAGE(is_found, "not found: " << text);
        }
        for (const checked::Finding& finding : found) {
            bool is_expected = false;
            for (const Hazard& hazard : hazards)
                is_expected = is_expected || matches(finding, hazard, false);
            CHECK_MESSAGE(is_expected, "found, and not there: " << finding.message);
            check_sentence(finding);
        }
    }
    const Judging judging(true);
    const std::string error = error_of(program);
    bool tells = false;
    for (const Hazard& hazard : hazards) {
        bool says_all = hazard.buffer == nullptr || error.find(hazard.buffer) != std::string::npos;
        for (const Side& side : {hazard.first, hazard.second})
            says_all = says_all && (side.who == nullptr || error.find(side.who) != std::string::npos);
        tells = tells || says_all;
    }
    INFO("thrown: " << error);
    CHECK_MESSAGE(!error.empty(), "nothing was thrown");
    CHECK_MESSAGE((tells || error.empty()), "another error was thrown");
}

void pass(const Program& program) {
    const Judging judging(true);
    try {
        World world;
        program(world);
        fill_bytes(world.main, world.probe, 0);
    } catch (const std::exception& error) {
        FAIL_CHECK("thrown: " << error.what());
    }
    const std::string report = checked::report();
    CHECK_MESSAGE(checked::findings().empty(), report);
}

void find_unnecessary_wait(const Program& program) {
    const Judging judging(true);
    try {
        World world;
        program(world);
    } catch (const std::exception& error) {
        FAIL_CHECK("thrown: " << error.what());
    }
    CHECK(mistakes_found().empty());
    const auto all = checked::findings();
    REQUIRE(all.size() == 1);
    CHECK(all[0].mistake == Mistake::unnecessary_wait);
    CHECK_FALSE(all[0].message.empty());
}

} // namespace sluice::test
