// Any thread may use queues, events, semaphores, captures, executables and memory at the same time: for the thread sanitizer, which
// sees a lock that is missing only where threads meet.
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sluice/backend/detail/host/capture.hpp>
#include <sluice/backend/detail/host/event.hpp>
#include <sluice/backend/detail/host/semaphore.hpp>
#include <sluice/backend/host.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

#include "support/alive.hpp"
#include "support/doctest.hpp"

namespace backend_host_races {

using namespace sluice;
using namespace sluice::test;

namespace {

// Runs each of `works` again and again on a thread of its own, all beginning together. What they throw is theirs: work of one may fail another's.
template <class... Works>
void at_once(int rounds, Works... works) {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> ready{0};
    const auto start = [&](auto work) {
        threads.emplace_back([work, rounds, &ready] {
            ready.fetch_add(1, std::memory_order_relaxed); // no more order than that
            while (ready.load(std::memory_order_relaxed) < sizeof...(Works))
                std::this_thread::yield();
            for (int round = 0; round < rounds; ++round) {
                try {
                    work(round);
                } catch (const Error&) {
                }
            }
        });
    };
    (start(works), ...);
    for (std::thread& thread : threads)
        thread.join();
}

// Two functions, each on a thread of its own.
template <class One, class Another>
void meet(One one, Another another) {
    at_once(
        200, [&](int) { one(); }, [&](int) { another(); });
}

const std::exception_ptr failure = std::make_exception_ptr(std::runtime_error("bad pixel"));

} // namespace

TEST_CASE("threads use one queue, event and semaphore at the same time") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream, other;
        HostEvent event({.timing = true});
        HostSemaphore semaphore;
        event.record(stream);
        stream.sync();
        at_once(
            150,
            [&](int round) {
                stream.enqueue([] {});
                event.record(stream);
                semaphore.signal(stream, static_cast<std::uint32_t>(round));
            },
            [&](int) {
                other.wait(event);
                event.record(other);
                (void)event.is_done();
                (void)stream.is_done();
            },
            [&](int round) {
                stream.get()->fail(failure);
                (void)stream.get()->failure();
                if (round % 4 == 0)
                    event.sync();
                Host::clear_failure(stream.get());
            },
            [&](int) {
                other.get()->fail(failure);
                Host::clear_failure(other.get());
                (void)event.get()->recorded();
                (void)event.get()->failure();
                (void)event.get()->reached_at();
                (void)semaphore.value();
            },
            [&](int round) {
                semaphore.wait(other, static_cast<std::uint32_t>(round % 2));
                semaphore.signal(static_cast<std::uint32_t>(round));
            });
        semaphore.signal(1000);
        for (const HostStream* each : {&stream, &other}) {
            CHECK_NOTHROW(each->get()->drain()); // no stream waits for the semaphore any longer
            Host::clear_failure(each->get());
        }
        at_once(
            50, [&](int) { (void)semaphore.value(); }, [&](int) { Host::reset_semaphore(semaphore.get()); });
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("two functions of one object meet, without others that would order them") {
    const HostStream stream, other;
    HostEvent event({.timing = true});
    HostSemaphore semaphore;
    const auto fails = [&] {
        stream.get()->fail(failure);
        stream.get()->clear_failure();
    };
    meet(fails, [&] { (void)stream.get()->failure(); });
    meet(fails, fails);
    at_once(
        200, [&](int) { stream.get()->fail(failure); }, [&](int) { (void)stream.get()->failure(); },
        [&](int) { stream.get()->clear_failure(); });
    stream.get()->clear_failure();
    meet([&] { stream.enqueue([] {}); }, [&] { (void)stream.get()->idle(); });
    meet([&] { event.record(stream); }, [&] { (void)event.get()->recorded(); });
    meet([&] { event.record(stream); }, [&] { (void)event.get()->is_done(); });
    meet([&] { event.record(stream); }, [&] { (void)event.get()->failure(); });
    meet([&] { event.record(stream); }, [&] { (void)event.get()->reached_at(); });
    meet([&] { event.record(stream); }, [&] { event.get()->wait_on(*other.get()); });
    stream.sync();
    other.sync();
    meet([&] { semaphore.signal(1); }, [&] { semaphore.get()->reset(); });
    other.get()->fail(failure);
    meet([&] { semaphore.signal(other, 1); }, [&] { semaphore.get()->reset(); });
    CHECK_NOTHROW(other.get()->drain());
    Host::clear_failure(other.get());
    const auto allocates = [] { Host::free_device(Host::allocate_device(8)); };
    meet(allocates, [] { (void)Host::device_memory_in_use(); });
    meet(allocates, [&] { (void)Host::is_device_memory(&event); });
    CHECK_NOTHROW(stream.sync());
}

TEST_CASE("a capture meets what others do with its stream, its events and itself") {
    const HostStream stream, other;
    HostEvent mark;
    const auto captures = [&] {
        Host::begin_capture(stream.get(), CaptureMode::relaxed);
        try {
            stream.enqueue([] {});
            mark.record(stream);
            for (int work = 0; work < 20; ++work) { // time for others
                stream.enqueue([] {});
                std::this_thread::yield();
            }
        } catch (const Error&) {
            // Others have made it invalid; its end says so, too.
        }
        Host::destroy_graph(Host::end_capture(stream.get()));
    };
    meet(captures, [&] { (void)stream.get()->capture(); });
    meet(captures, [&] { (void)Host::capturing_graph(stream.get()); });
    meet(captures, [&] { stream.enqueue([] {}); }); // runs, or becomes part of it
    meet(captures, [&] {
        if (const auto capture = stream.get()->capture(); capture != nullptr)
            capture->invalidate("disturbed");
    });
    meet(captures, [&] { other.wait(mark); }); // refused, or ordered
    meet(captures, [&] {
        const HostStream gone; // joins, and goes
        gone.wait(mark);
    });
    // Each round as long as a capture takes.
    const auto often = [](auto call) {
        return [call](int) {
            for (int turn = 0; turn < 20; ++turn) {
                call();
                std::this_thread::yield();
            }
        };
    };
    const auto breaks = often([&] {
        if (const auto capture = stream.get()->capture(); capture != nullptr)
            capture->invalidate("disturbed");
    });
    const auto asks = often([&] {
        try {
            (void)Host::capturing_graph(stream.get());
        } catch (const Error&) {
            // There is none, or it is of no use any longer.
        }
    });
    const auto begins = [&](int) { captures(); };
    at_once(300, begins, breaks, breaks);
    at_once(300, begins, breaks, asks);
    CHECK_NOTHROW(stream.sync());
    Host::clear_failure(other.get());
}

TEST_CASE("what was written before a semaphore is signalled is read after it") {
    const HostStream stream;
    HostSemaphore semaphore;
    int value = 0; // no atomic
    std::thread reads([&] {
        while (semaphore.value() < 1)
            std::this_thread::yield();
        CHECK(value == 7);
    });
    value = 7;
    semaphore.signal(1);
    reads.join();
}

TEST_CASE("threads allocate and free, and ask about memory, at the same time") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream;
        const auto work = [&](int round) {
            void* const memory = Host::allocate_device(64);
            void* const ordered = Host::allocate_device(64, stream.get());
            (void)Host::is_device_memory(memory);
            (void)Host::device_memory_in_use();
            Host::free_device(ordered, stream.get());
            Host::free_device(memory);
            const DeviceBuffer<int, Host> buffer(static_cast<std::size_t>(round % 3 + 1));
            (void)detail::Allocations::instance().changes();
        };
        at_once(100, work, work, work);
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("threads hand one capture work, end it and disturb it at the same time") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream, joined;
        HostEvent event;
        at_once(
            100,
            [&](int) {
                Host::begin_capture(stream.get(), CaptureMode::relaxed);
                stream.enqueue([] {});
                (void)Host::capturing_graph(stream.get());
                const HostStream gone;
                event.record(stream);
                gone.wait(event);
                stream.wait(event);
                void* memory = nullptr;
                try {
                    memory = Host::allocate_device(16, stream.get());
                    Host::free_device(memory, stream.get());
                } catch (const Error&) {
                }
                const auto graph = Host::end_capture(stream.get());
                Host::destroy_graph(graph);
            },
            [&](int) { stream.enqueue([] {}); },
            [&](int) {
                HostEvent mine;
                mine.record(stream);
            },
            [&](int) {
                void* const memory = Host::allocate_device(8);
                Host::free_device(memory);
            });
        stream.sync();
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("threads allocate for a graph while another one ends its capture") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream;
        std::vector<Host::NativeGraph> graphs;
        std::vector<void*> first, second;
        const auto allocates = [&](std::vector<void*>& kept) {
            return [&kept, &stream](int) { kept.push_back(Host::allocate_device(8, stream.get())); };
        };
        at_once(
            200,
            [&](int) {
                Host::begin_capture(stream.get(), CaptureMode::relaxed);
                for (int work = 0; work < 20; ++work) { // time for others
                    stream.enqueue([] {});
                    std::this_thread::yield();
                }
                graphs.push_back(Host::end_capture(stream.get()));
            },
            allocates(first), allocates(second));
        for (const auto* kept : {&first, &second}) {
            for (void* const memory : *kept)
                Host::free_device(memory);
        }
        for (const auto graph : graphs)
            Host::destroy_graph(graph);
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("a thread frees memory of a capture while another one allocates for it") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream;
        constexpr std::size_t rounds = 200;
        std::vector<void*> first(rounds), second(rounds);
        Host::begin_capture(stream.get(), CaptureMode::relaxed);
        for (void*& memory : first)
            memory = Host::allocate_device(8, stream.get());
        at_once(
            static_cast<int>(rounds),
            [&](int round) {
                second[static_cast<std::size_t>(round)] = Host::allocate_device(8, stream.get());
            },
            [&](int round) { Host::free_device(first[static_cast<std::size_t>(round)], stream.get()); });
        for (void* const memory : second)
            Host::free_device(memory, stream.get());
        Host::destroy_graph(Host::end_capture(stream.get()));
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("threads ask for an event that replays record") {
    const HostStream stream, other;
    const HostEvent event;
    Host::begin_capture(stream.get(), CaptureMode::relaxed);
    Host::record_external(event.get(), stream.get());
    const auto graph = Host::end_capture(stream.get());
    const auto executable = Host::instantiate(graph);
    at_once(
        200, [&](int) { Host::launch(executable, stream.get()); }, [&](int) { (void)event.get()->is_done(); },
        [&](int) { event.get()->wait_on(*other.get()); });
    stream.sync();
    other.sync();
    CHECK(event.is_done());
    Host::destroy_graph_exec(executable);
    Host::destroy_graph(graph);
}

TEST_CASE("threads launch and change one executable at the same time") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream, other;
        std::atomic<int> calls{0};
        int memory[2] = {};
        const auto graph = Host::create_graph();
        const auto first = Host::add_fill(graph, nullptr, 0, &memory[0], 1, sizeof(int));
        Host::add_task(graph, &first, 1, host::Task{[&calls] { ++calls; }});
        const auto executable = Host::instantiate(graph);
        at_once(
            60, [&](int) { Host::launch(executable, stream.get()); },
            [&](int) { Host::launch(executable, other.get()); },
            [&](int) { (void)Host::update(executable, graph); },
            [&](int round) { Host::set_fill(executable, first, &memory[0], round, sizeof(int)); });
        stream.sync();
        other.sync();
        CHECK(calls == 120);
        Host::destroy_graph_exec(executable);
        Host::destroy_graph(graph);
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("a semaphore may go as soon as its value is seen") {
    const HostStream stream;
    for (int round = 0; round < 200; ++round) {
        HostSemaphore reached;
        stream.enqueue([&reached] { reached.signal(1); });
        while (!reached.wait_for(1, std::chrono::seconds{1}))
            continue;
    }
    stream.sync();
}

} // namespace backend_host_races
