/// \file
/// live_input: how old results are in pipelines whose input doesn't wait, beside the same by hand.
///
///     live_input [--backend auto|cuda|host] [--part overload|paced|bound|all] [--rows ab…] [--side sluice|hand|both]
///                [--seconds S] [--check]
///
/// - overload: a frame each 300 us, and a stage that takes 1 ms for it, with two slots. The loop waits for the next frame of the
///   camera, which keeps none: what comes while the loop is elsewhere is `skipped`, what `try_submit` doesn't take is `refused`.
///   `age` is from when the loop has the frame to the end of its last stage; `under way`, the most batches that were at once;
///   `take`, the longest call that handed a frame over; `MiB`, by how much the process's and the device's memory grew from a
///   quarter of the row to its end. Asked: (a) p50 <= 3 ms and p99 <= 5 ms, (b) p99 <= 2 ms.
/// - paced: a batch each 200 us through two or four stages of one small block. From before `submit` to the end of the last stage; the
///   two sides in five turns. Asked of the first four ways: p50 <= 1.1 times by hand, p99 <= 1.5 times its own p50. "by default",
///   a graphed step has each stage work on the batch after the next stage's, which is for rate and not for latency.
/// - bound: what the host pays for a step of two stages that do nothing, in bursts in turns. Asked: <= 1.012 times by hand.
///
/// A row takes `--seconds` (5), the two sides of a paced one as long each; `--rows ab` leaves out other overloads than (a) and (b).
/// The exit code is 1 where a batch was lost, counted wrongly or out of order, more were under way than may be, and with `--check` where
/// an asked figure is missed; 2 for wrong options.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "live_input.hpp"

namespace {

using namespace bench::live;

struct Options {
    std::string backend = "auto", part = "all", rows = "abcde", side = "both";
    double seconds = 5;
    bool check = false;

    bool has(const char* asked) const { return part == "all" || part == asked; }
    bool has(const OverloadRow& row) const {
        const bool by_hand = row.name.find("by hand") != std::string::npos;
        return rows.find(row.letter) != std::string::npos && (side == "both" || (side == "hand") == by_hand);
    }
};

[[noreturn]] void refuse(const std::string& why) {
    std::fprintf(stderr, "live_input: %s; the top of bench/live_input/main.cpp says how it is run\n",
                 why.c_str());
    std::exit(2);
}

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--check") {
            options.check = true;
            continue;
        }
        if (i + 1 == argc)
            refuse("there is no option " + name + ", or it lacks its value");
        const std::string value = argv[++i];
        const auto one_of = [&](std::string& to, std::initializer_list<const char*> values) {
            if (std::find(values.begin(), values.end(), value) == values.end())
                refuse(name + " takes no " + value);
            to = value;
        };
        if (name == "--backend")
            one_of(options.backend, {"auto", "cuda", "host"});
        else if (name == "--part")
            one_of(options.part, {"overload", "paced", "bound", "all"});
        else if (name == "--side")
            one_of(options.side, {"sluice", "hand", "both"});
        else if (name == "--rows")
            options.rows = value;
        else if (name == "--seconds")
            options.seconds = std::atof(value.c_str());
        else
            refuse("there is no option " + name);
    }
    if (!(options.seconds >= 0.05 && options.seconds <= 1e5))
        refuse("--seconds is 0.05 to 100,000");
    return options;
}

// What is wrong, and what was asked for and missed.
std::vector<std::string> faults, missed;

std::string text(double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.4g", value);
    return digits;
}

// Of sorted values.
double part_of(const std::vector<double>& values, double share) {
    return values.empty() ? 0
                          : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// The process's own memory, and the device's in use, in MiB.
double memory_of(Ends& ends) {
    long pages = 0, resident = 0;
    if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2)
            resident = 0;
        std::fclose(file);
    }
    return (static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) +
            static_cast<double>(ends.memory())) /
           (1 << 20);
}

// Wakes up in time: what is left of a sleep is spun.
void wait_until(Time time) {
    constexpr Time slack = 80'000;
    if (const Time left = time - now(); left > slack)
        std::this_thread::sleep_for(std::chrono::nanoseconds(left - slack));
    while (now() < time) {
    }
}

constexpr Time between_comparisons = 1'000'000'000;

// Hands some batches over, so that what is measured loads no kernel and captures no graph.
void lead(Subject& subject) {
    for (std::uint32_t batch = 0; batch < 32; ++batch) {
        (void)subject.take({batch});
        if (batch % 8 == 7)
            subject.finish();
    }
    subject.finish();
}

// What a camera that doesn't wait has handed over, and when.
struct Handed {
    std::vector<Time> got, taken;
    std::vector<std::uint32_t> numbers;
    std::size_t count = 0, refused = 0, skipped = 0;
    Time longest = 0;  // call
    double memory = 0; // by how much it grew from a quarter on

    explicit Handed(std::size_t most)
        : got(most, 1), taken(most, 1), numbers(most, 1) {} // so that their pages are there
};

void hand_over(Subject& subject, Ends& ends, Time length, Handed& handed) {
    std::size_t frame = 0;
    double memory = memory_of(ends);
    bool has_memory = false;
    const Time begun = now() + frame_period;
    Time compared = begun;
    const auto comes_at = [&](std::size_t number) {
        return begun + static_cast<Time>(number) * frame_period;
    };
    while (comes_at(frame) < begun + length) {
        if (now() - compared > between_comparisons) {
            ends.compare_clocks(false);
            compared = now();
        }
        if (!has_memory && now() - begun > length / 4) {
            memory = memory_of(ends);
            has_memory = true;
        }
        const std::size_t expected = frame;
        while (comes_at(frame) < now())
            ++frame; // The camera doesn't wait.
        handed.skipped += frame - expected;
        if (comes_at(frame) >= begun + length)
            break;
        wait_until(comes_at(frame));
        const Time time = now();
        const bool is_taken = subject.take({static_cast<std::uint32_t>(frame)});
        const Time after = now();
        handed.longest = std::max(handed.longest, after - time);
        if (is_taken) {
            handed.got[handed.count] = time;
            handed.taken[handed.count] = after;
            handed.numbers[handed.count++] = static_cast<std::uint32_t>(frame);
        } else {
            ++handed.refused;
        }
        ++frame;
    }
    handed.memory = memory_of(ends) - memory;
}

void check_counts(const std::string& who, const Counts& before, const Counts& after, const Handed& handed,
                  std::size_t done) {
    if (done != handed.count)
        faults.push_back(who + std::to_string(done) + " batches are done of " + std::to_string(handed.count));
    if (after.submitted - before.submitted != handed.count ||
        after.completed - before.completed != handed.count ||
        after.dropped - before.dropped != handed.refused)
        faults.push_back(who + "it counts " + std::to_string(after.submitted - before.submitted) +
                         " submitted, " + std::to_string(after.completed - before.completed) +
                         " completed and " + std::to_string(after.dropped - before.dropped) +
                         " dropped instead of " + std::to_string(handed.count) + ", as many and " +
                         std::to_string(handed.refused));
}

void overload(const OverloadRow& row, Ends& ends, double seconds) {
    const std::unique_ptr<Subject> subject = row.make();
    lead(*subject);
    const Counts before = subject->counts();
    const Time length = static_cast<Time>(seconds * 1e9);
    Handed handed(static_cast<std::size_t>(length / frame_period + 1));
    ends.restart(handed.got.size());
    ends.compare_clocks(true);
    hand_over(*subject, ends, length, handed);
    subject->finish();
    ends.compare_clocks(true);

    const std::vector<End> done = ends.read();
    const std::string who = "(" + row.letter + ") " + row.name + ": ";
    check_counts(who, before, subject->counts(), handed, done.size());
    std::vector<double> ages;
    std::size_t under_way = 0, ended = 0;
    for (std::size_t i = 0; i < std::min(handed.count, done.size()); ++i) {
        if (done[i].number != handed.numbers[i]) {
            faults.push_back(who + "frame " + std::to_string(done[i].number) + " came out where " +
                             std::to_string(handed.numbers[i]) + " went in");
            break;
        }
        ages.push_back((done[i].time - static_cast<double>(handed.got[i])) * 1e-6);
        while (ended < done.size() && done[ended].time <= static_cast<double>(handed.taken[i]))
            ++ended;
        under_way = std::max(under_way, i + 1 - std::min(ended, i + 1));
    }
    std::sort(ages.begin(), ages.end());
    std::printf("(%s) %-26s %8.2f %8.2f %8.2f %8.2f %8zu %8zu %8zu %9zu %8.2f %7.1f\n", row.letter.c_str(),
                row.name.c_str(), part_of(ages, 0.5), part_of(ages, 0.99), part_of(ages, 0.999),
                part_of(ages, 1), handed.count, handed.refused, handed.skipped, under_way,
                static_cast<double>(handed.longest) * 1e-6, handed.memory);
    std::fflush(stdout);
    if (row.in_flight != 0 && under_way > row.in_flight)
        faults.push_back(who + std::to_string(under_way) + " batches were under way at once");
    if (row.most_p50 > 0 && part_of(ages, 0.5) > row.most_p50)
        missed.push_back(who + "p50 is above " + text(row.most_p50) + " ms");
    if (row.most_p99 > 0 && part_of(ages, 0.99) > row.most_p99)
        missed.push_back(who + "p99 is above " + text(row.most_p99) + " ms");
    if ((row.most_p50 > 0 || row.most_p99 > 0) && handed.memory > 4)
        missed.push_back(who + "memory grew by " + text(handed.memory) + " MiB");
}

// One turn of one side: adds microseconds of each batch.
void pace(Subject& subject, Ends& ends, double seconds, std::vector<double>& latencies) {
    const auto batches = static_cast<std::size_t>(seconds * 1e9) / static_cast<std::size_t>(tick_period);
    std::vector<Time> begun(batches);
    ends.restart(batches);
    ends.compare_clocks(true);
    Time compared = now(), next = compared + tick_period;
    for (Time& time : begun) {
        while (now() < next) {
        }
        time = now();
        (void)subject.take({0});
        next = std::max(next + tick_period, now());
        if (time - compared > between_comparisons) {
            while (now() < time + tick_period / 2) {
            }
            ends.compare_clocks(false);
            compared = now();
        }
    }
    subject.finish();
    ends.compare_clocks(true);
    const std::vector<End> done = ends.read();
    if (done.size() != batches)
        faults.push_back("a paced row: " + std::to_string(done.size()) + " batches are done of " +
                         std::to_string(batches));
    for (std::size_t i = 0; i < std::min(batches, done.size()); ++i)
        latencies.push_back((done[i].time - static_cast<double>(begun[i])) * 1e-3);
}

void paced(const PacedRow& row, Ends& ends, double seconds) {
    const std::unique_ptr<Subject> sides[2] = {row.sluice(), row.by_hand ? row.by_hand() : nullptr};
    std::vector<double> latencies[2];
    for (const auto& side : sides) {
        if (side)
            lead(*side);
    }
    const std::size_t replays = sides[0]->counts().replays;
    for (int turn = 0; turn < turns; ++turn) {
        for (int i = 0; i < 2; ++i) {
            const std::size_t side = static_cast<std::size_t>((i + turn) % 2);
            if (sides[side])
                pace(*sides[side], ends, seconds / turns, latencies[side]);
        }
    }
    if (row.graphed && sides[0]->counts().replays == replays)
        faults.push_back(row.name + ": no graph was launched");
    for (std::vector<double>& side : latencies)
        std::sort(side.begin(), side.end());
    const double p50 = part_of(latencies[0], 0.5), p99 = part_of(latencies[0], 0.99);
    std::printf("%-30s %9.2f %9.2f %9.2f", row.name.c_str(), p50, p99, p99 / p50);
    if (row.by_hand) {
        const double other = part_of(latencies[1], 0.5);
        std::printf(" %9.2f %9.2f %9.3f", other, part_of(latencies[1], 0.99), p50 / other);
        if (row.asked && p50 > 1.1 * other)
            missed.push_back(row.name + ": p50 is more than 1.1 times by hand's");
    }
    std::printf("\n");
    std::fflush(stdout);
    if (row.asked && p99 > 1.5 * p50)
        missed.push_back(row.name + ": p99 is more than 1.5 times p50");
}

void bound(const std::vector<BoundRow>& rows, double seconds) {
    std::vector<std::vector<double>> times(rows.size());
    for (const BoundRow& row : rows)
        (void)row.burst();
    const Time end = now() + static_cast<Time>(seconds * 1e9);
    for (std::size_t turn = 0; now() < end || turn < 2; ++turn) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::size_t row = (i + turn) % rows.size();
            times[row].push_back(rows[row].burst());
        }
    }
    // Of neighbouring bursts.
    const auto ratio = [&](std::size_t over, std::size_t under) {
        std::vector<double> ratios;
        for (std::size_t turn = 0; turn < times[over].size(); ++turn)
            ratios.push_back(times[over][turn] / times[under][turn]);
        std::sort(ratios.begin(), ratios.end());
        return part_of(ratios, 0.5);
    };
    std::printf("\n%-30s %9s %14s %11s\n", "two empty stages", "ns a step", "/ no bound", "/ by hand");
    for (std::size_t row = 0; row < rows.size(); ++row) {
        std::vector<double> sorted = times[row];
        std::sort(sorted.begin(), sorted.end());
        std::printf("%-30s %9.0f %14.4f", rows[row].name.c_str(), part_of(sorted, 0.5), ratio(row, 1));
        if (rows.size() > 2)
            std::printf(" %11.4f", ratio(row, 2));
        std::printf("\n");
    }
    if (rows.size() > 2 && ratio(0, 2) > 1.012)
        missed.push_back("two empty stages: the host takes more than 1.012 times by hand's time");
}

void run(const Options& options, const Rows& rows) {
    std::printf("%s\n", rows.device.c_str());
    if (options.has("overload")) {
        std::printf("\n%-30s %8s %8s %8s %8s %8s %8s %8s %9s %8s %7s\n", "a frame each 0.3 ms: age, ms",
                    "p50", "p99", "p99.9", "longest", "done", "refused", "skipped", "under way", "take, ms",
                    "MiB");
        for (const OverloadRow& row : rows.overload) {
            if (options.has(row))
                overload(row, *rows.ends, options.seconds);
        }
    }
    if (options.has("paced")) {
        std::printf("\n%-30s %9s %9s %9s %9s %9s %9s\n", "a batch each 200 us: us", "p50", "p99", "p99/p50",
                    "by hand", "p99", "p50/hand");
        for (const PacedRow& row : rows.paced)
            paced(row, *rows.ends, options.seconds);
    }
    if (options.has("bound"))
        bound(rows.bound, options.seconds);
    if (const std::string precision = rows.ends->precision(); !precision.empty())
        std::printf("\n%s\n", precision.c_str());
}

} // namespace

int main(int argc, char** argv) try {
    const Options options = read_options(argc, argv);
    Rows rows;
#ifdef SLUICE_BENCH_CUDA
    if (options.backend != "host")
        rows = cuda_rows();
#endif
    if (!rows.ends && options.backend == "cuda") {
        std::puts("There is no CUDA device.");
        return EXIT_SUCCESS;
    }
    if (!rows.ends)
        rows = host_rows();
    run(options, rows);
    for (const std::string& fault : faults)
        std::printf("Wrong: %s.\n", fault.c_str());
    for (const std::string& aim : missed)
        std::printf("Missed: %s.\n", aim.c_str());
    return !faults.empty() || (options.check && !missed.empty()) ? EXIT_FAILURE : EXIT_SUCCESS;
} catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return EXIT_FAILURE;
}
