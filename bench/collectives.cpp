/// \file
/// collectives: what a collective takes, until the device is done, between GPUs (NCCL) or the Host backend's devices.
///
///     collectives [--gpus N] [--host]     N ranks of this process, 2 unless told otherwise
///
/// For each size: launched one by one, and as a graph of ten; with the kernels by which a communicator notices that a rank does
/// not come, and without (a timeout of 0). Median of 15 rounds of ten, of rank 0, in microseconds a collective; `GB/s` is the
/// bus bandwidth, as nccl-tests counts it: of an all-reduce 2 (N - 1) / N times its bytes, of an all-gather (N - 1) / N times
/// those that arrive, over the shortest time. Set NCCL_NVLS_ENABLE=0 to compare with docs/performance.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sluice/collective.hpp>
#include <sluice/sluice.hpp>

namespace {

constexpr int collectives_a_round = 10;
constexpr int rounds = 15;

struct Case {
    const char* name;
    bool gathers;
    std::size_t bytes; // reduced, or gathered in all
};

// The gradients of the experiments, their parts, and the factors of the decoder's first layer.
constexpr Case cases[] = {
    {"all_reduce", false, std::size_t{4} << 10},    {"all_reduce", false, std::size_t{256} << 10},
    {"all_reduce", false, std::size_t{2'800'000}},  {"all_reduce", false, std::size_t{47'000'000}},
    {"all_reduce", false, std::size_t{89'500'000}}, {"all_reduce", false, std::size_t{179'000'000}},
    {"all_gather", true, std::size_t{400'000}},     {"all_gather", true, std::size_t{800'000}},
    {"all_gather", true, std::size_t{3'200'000}},
};

// Microseconds a collective, launched one by one and as a graph.
struct Times {
    double eager = 0;
    double graphed = 0;
};

template <sluice::Backend B>
class Rank {
public:
    Rank(const sluice::Communicator<B>& communicator, std::size_t most_bytes)
        : communicator_(communicator), memory_(most_bytes / sizeof(float)) {
        fill_bytes(stream_, memory_, 0);
        stream_.sync();
    }

    Times measure(const Case& one) {
        Times times;
        times.eager = median([&] { enqueue(stream_, one); });
        // The work of the first rounds runs eagerly and is captured.
        sluice::GraphCapture<std::size_t, B> graph;
        const auto replay = [&] {
            graph.run(stream_, one.bytes, [&](sluice::BasicStreamRef<B> stream) { enqueue(stream, one); });
        };
        for (int i = 0; i < 3; ++i)
            replay();
        times.graphed = median(replay);
        stream_.sync();
        return times;
    }

private:
    void enqueue(sluice::BasicStreamRef<B> stream, const Case& one) {
        const std::size_t count = one.bytes / sizeof(float);
        for (int i = 0; i < collectives_a_round; ++i) {
            if (one.gathers) {
                const std::size_t part = count / static_cast<std::size_t>(communicator_.ranks());
                const auto all = memory_.first(part * static_cast<std::size_t>(communicator_.ranks()));
                all_gather(stream, communicator_,
                           all.subspan(part * static_cast<std::size_t>(communicator_.rank()), part), all);
            } else {
                all_reduce(stream, communicator_, memory_.first(count));
            }
        }
    }
    template <class Work>
    double median(const Work& work) {
        std::vector<double> times;
        work();
        for (int round = 0; round < rounds; ++round) {
            begin_.record(stream_);
            work();
            end_.record(stream_);
            end_.sync();
            times.push_back(1e3 * static_cast<double>(B::elapsed_milliseconds(begin_.get(), end_.get())) /
                            collectives_a_round);
        }
        std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
        return times[rounds / 2];
    }

    const sluice::Communicator<B>& communicator_;
    sluice::BasicStream<B> stream_;
    sluice::BasicEvent<B> begin_{{.timing = true}};
    sluice::BasicEvent<B> end_{{.timing = true}};
    sluice::DeviceBuffer<float, B> memory_;
};

// Of rank 0, by case.
template <sluice::Backend B>
std::vector<Times> measure(int ranks, std::chrono::milliseconds timeout) {
    std::vector<int> devices(static_cast<std::size_t>(ranks));
    std::iota(devices.begin(), devices.end(), 0);
    const auto communicators = sluice::Communicator<B>::for_devices(devices, {.timeout = timeout});
    std::vector<Times> times;
    std::vector<std::exception_ptr> thrown(communicators.size());
    // Made before the first collective, since an allocation may wait for a device that waits for this one's part.
    std::vector<std::unique_ptr<Rank<B>>> each;
    for (const auto& communicator : communicators) {
        const sluice::DeviceGuard<B> device(communicator.device());
        each.push_back(std::make_unique<Rank<B>>(communicator, std::size_t{179'000'000}));
    }
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < each.size(); ++rank) {
        threads.emplace_back([&, rank] {
            try {
                const sluice::DeviceGuard<B> device(communicators[rank].device());
                for (const Case& one : cases) {
                    const Times of_case = each[rank]->measure(one);
                    if (rank == 0)
                        times.push_back(of_case);
                }
            } catch (...) {
                thrown[rank] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const std::exception_ptr& one : thrown) {
        if (one != nullptr)
            std::rethrow_exception(one);
    }
    return times;
}

template <sluice::Backend B>
int run(int ranks) {
    const std::vector<Times> watched = measure<B>(ranks, std::chrono::seconds(20));
    const std::vector<Times> bare = measure<B>(ranks, std::chrono::milliseconds(0));
    std::printf("%d ranks on %s, %s\n", ranks, B::name, B::device_name(0).c_str());
    std::printf("%-11s %12s %10s %10s %10s %10s %8s\n", "", "bytes", "eager us", "graph us", "no watch",
                "graph", "GB/s");
    for (std::size_t i = 0; i < watched.size(); ++i) {
        const double shortest =
            std::min({watched[i].eager, watched[i].graphed, bare[i].eager, bare[i].graphed});
        const double share = (cases[i].gathers ? 1.0 : 2.0) * (ranks - 1) / ranks;
        std::printf("%-11s %12zu %10.1f %10.1f %10.1f %10.1f %8.1f\n", cases[i].name, cases[i].bytes,
                    watched[i].eager, watched[i].graphed, bare[i].eager, bare[i].graphed,
                    share * static_cast<double>(cases[i].bytes) / shortest / 1e3);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    int ranks = 2;
    [[maybe_unused]] bool host = false; // without CUDA the only one
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--host") {
            host = true;
        } else if (std::string_view(argv[i]) == "--gpus" && i + 1 < argc) {
            ranks = std::atoi(argv[++i]);
        } else {
            std::fprintf(stderr, "collectives: expected --gpus N and --host, not %s\n", argv[i]);
            return 2;
        }
    }
    (void)setenv("SLUICE_HOST_DEVICES", std::to_string(ranks).c_str(), 0);
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    try {
#if SLUICE_HAS_CUDA
        if (!host)
            return run<sluice::Cuda>(ranks);
#endif
        return run<sluice::Host>(ranks);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "collectives: %s\n", error.what());
        return 1;
    }
}
