/// \file
/// Cameras: a source each, and all of them as one for a pipeline.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <common/text.hpp>
#include <live/decoder.hpp>
#include <live/options.hpp>
#include <sluice/sluice.hpp>

namespace live {

using Clock = std::chrono::steady_clock;

/// Set by Ctrl-C and SIGTERM.
inline std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free); // so that a signal's handler may set it

/// One picture of a camera, in one of two kinds of memory.
template <sluice::Backend B>
struct Frame {
    sluice::PinnedBuffer<std::uint8_t, B> on_host;   ///< where the CPU decodes
    sluice::DeviceBuffer<std::uint8_t, B> on_device; ///< where nvJPEG does
    std::size_t camera = 0;
    std::size_t number = 0; ///< of the camera's, with gaps where frames were dropped
    std::size_t photograph = 0;
    Clock::time_point taken;
};

/// The age of a frame counts from here, in reports, too.
template <sluice::Backend B>
Clock::time_point batch_time(const Frame<B>& frame) {
    return frame.taken;
}

/// What all cameras together have done. `captured` are the frames whose time came: each of them has come out, or is one of the
/// others.
struct Counts {
    std::size_t captured = 0;
    std::size_t missed = 0;  ///< since the decoder was still at the one before
    std::size_t bad = 0;     ///< that could not be decoded
    std::size_t dropped = 0; ///< decoded, for which the pipeline had no room
    double decode_ms = 0;    ///< of one frame, in the mean
};

/// One camera. A photograph each `1 / rate` seconds, on a thread of the source's, whether it is ready for it or not.
struct Camera {
    static constexpr std::size_t kept = 2; ///< frames that it has for a decoder that is late

    std::size_t index = 0;
    const Photographs* photographs = nullptr;
    double rate = 0; ///< 0: whenever it is asked
    std::size_t frames = 0;
    std::atomic<unsigned>* arrivals = nullptr; ///< of all cameras: changes when one may have something new
    Clock::time_point begin{};                 ///< of frame 0
    std::size_t next = 0;                      ///< all frames before this one have been captured
    std::size_t missed = 0;
    std::size_t decoded = 0;
    Clock::duration decoding{};
    std::atomic<bool> ended{false};

    /// Waits for the next frame's time. False at the end.
    bool await(const sluice::FillStop& stop, Clock::time_point& taken) {
        if (rate == 0) {
            taken = Clock::now();
            return next < frames && !interrupted;
        }
        const auto time_of = [this](std::size_t number) {
            return begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(static_cast<double>(number) / rate));
        };
        // What the camera has overwritten meanwhile.
        const double late = std::chrono::duration<double>(Clock::now() - begin).count() * rate;
        const std::size_t newest =
            std::min(late > 0 ? static_cast<std::size_t>(late) : 0, std::max<std::size_t>(frames, 1) - 1);
        if (newest > next + kept) {
            missed += newest - kept - next;
            next = newest - kept;
        }
        taken = time_of(next);
        for (Clock::time_point now = Clock::now(); next < frames && now < taken; now = Clock::now()) {
            if (interrupted || stop.stop_requested())
                return false;
            std::this_thread::sleep_until(std::min(taken, now + std::chrono::milliseconds(20)));
        }
        return next < frames && !interrupted;
    }

    void announce() {
        arrivals->fetch_add(1);
        arrivals->notify_one();
    }
};

/// What a camera's source calls for each frame.
template <sluice::Backend B>
struct Capture {
    Camera* camera;

    bool operator()(std::unique_ptr<Decoder>& decoder, std::size_t /*index*/, Frame<B>& out,
                    sluice::FillStop stop) const {
        camera->announce(); // the frame before: it is the source's since this one is asked for
        if (!camera->await(stop, out.taken)) {
            camera->ended = true;
            camera->announce();
            return false;
        }
        out.camera = camera->index;
        out.number = camera->next++;
        out.photograph = (out.number + out.camera) % camera->photographs->size();
        const Clock::time_point begin = Clock::now();
        try {
            camera->photographs->decode(out.photograph, *decoder,
                                        out.on_device.size() > 0 ? out.on_device.data() : out.on_host.data());
        } catch (const sluice::Error& bad) { // the source leaves it out
            throw sluice::Error("frame " + std::to_string(out.number) + ", " + bad.what());
        }
        camera->decoding += Clock::now() - begin;
        ++camera->decoded;
        return true;
    }
};

/// What `Pipeline::run` and `report_of` take for a source: the frames of all cameras, in turns, those of each camera in order.
template <sluice::Backend B>
class Cameras {
    using CameraSource = sluice::Source<Frame<B>, std::unique_ptr<Decoder>, Capture<B>, B>;

public:
    using backend = B;
    using value_type = sluice::SourceBatch<Frame<B>, B>;
    using Iterator = sluice::SourceIterator<Cameras>;

    Cameras(const Options& options, const Photographs& photographs, DecoderKind kind, int timed_batches)
        : paced_(options.rate > 0) {
        const augment::ImageShape shape = photographs.shape();
        const auto bytes = static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
                           static_cast<std::size_t>(shape.width);
        const auto make_frame = [&](int) {
            Frame<B> frame;
            if (kind == DecoderKind::cpu)
                frame.on_host = sluice::PinnedBuffer<std::uint8_t, B>(bytes);
            else
                frame.on_device = sluice::DeviceBuffer<std::uint8_t, B>(bytes);
            return frame;
        };
        for (int i = 0; i < options.cameras; ++i) {
            Camera& camera = *cameras_.emplace_back(std::make_unique<Camera>());
            camera.index = static_cast<std::size_t>(i);
            camera.photographs = &photographs;
            camera.rate = options.rate;
            camera.frames = options.frames_of_camera();
            camera.arrivals = &arrivals_;
            // Those under way, one that is being decoded, and two that wait.
            sources_.push_back(std::make_unique<CameraSource>(
                make_frame, [kind](int) { return make_decoder(kind); }, Capture<B>{&camera},
                sluice::SourceOptions<B>{.workers = 1,
                                         .slots = options.in_flight + 3,
                                         .when_ahead = paced_ ? sluice::WhenAhead::drop_oldest
                                                              : sluice::WhenAhead::wait,
                                         .timed_batches = timed_batches,
                                         .errors_in_a_row = 10}));
        }
        live_.assign(sources_.size(), true);
    }

    /// A frame of the next camera that has one; waits until there is one. Empty at the end of all.
    value_type next() {
        start();
        const double asked =
            std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
        for (;;) {
            const unsigned seen = arrivals_.load();
            bool any = false;
            for (std::size_t tried = 0; tried < sources_.size(); ++tried) {
                const std::size_t at = turn_;
                turn_ = (turn_ + 1) % sources_.size();
                if (!live_[at])
                    continue;
                CameraSource& source = *sources_[at];
                // With a clock no camera is waited for. `newest` passes bad frames, which `filled` does not count.
                const bool waits = !paced_ || cameras_[at]->ended;
                if (value_type frame = waits || source.filled() > 0 ? source.next() : source.newest()) {
                    asked_.push_back(asked);
                    if (asked_.size() > most_asked)
                        asked_.pop_front();
                    return frame;
                }
                live_[at] = !waits;
                any = any || live_[at];
            }
            if (!any)
                return {};
            arrivals_.wait(seen);
        }
    }
    Iterator begin() { return Iterator(*this); }
    std::default_sentinel_t end() const noexcept { return {}; }

    /// Ends all, and returns what became of all frames: those that still wait are dropped.
    Counts stop() {
        Counts counts;
        std::size_t decoded = 0;
        Clock::duration decoding{};
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            sources_[i]->stop();
            counts.captured += cameras_[i]->next;
            counts.missed += cameras_[i]->missed;
            counts.bad += cameras_[i]->next - cameras_[i]->missed - cameras_[i]->decoded;
            counts.dropped += sources_[i]->dropped();
            decoded += cameras_[i]->decoded;
            decoding += cameras_[i]->decoding;
        }
        if (decoded > 0)
            counts.decode_ms =
                std::chrono::duration<double, std::milli>(decoding).count() / static_cast<double>(decoded);
        return counts;
    }

    /// A sentence for each camera that had bad frames.
    std::vector<std::string> skipped() const {
        std::vector<std::string> sentences;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            if (const sluice::SkippedBatches bad = sources_[i]->skipped(); bad.count > 0) {
                sentences.push_back(
                    "camera " + std::to_string(i) + ": " + examples::counted(bad.count, "frame") +
                    (bad.count == 1 ? " was" : " were") + " left out; the first: " + bad.reason);
            }
        }
        return sentences;
    }

    // For the report: all fills in the order in which they were handed out, or, if they were not, ready. The loop has waited since
    // it asked for any camera's.
    int workers() const noexcept { return static_cast<int>(sources_.size()); }
    bool drops() const noexcept { return paced_; }
    std::vector<sluice::FillTime> fill_times() const {
        std::vector<sluice::FillTime> all;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            for (sluice::FillTime fill : sources_[i]->fill_times()) {
                fill.worker = static_cast<int>(i);
                all.push_back(fill);
            }
        }
        const auto time_of = [](const sluice::FillTime& fill) {
            return fill.given > 0 ? fill.given : fill.end;
        };
        std::sort(all.begin(), all.end(), [&](const sluice::FillTime& a, const sluice::FillTime& b) {
            return time_of(a) < time_of(b);
        });
        auto asked = asked_.rbegin();
        for (std::size_t i = all.size(); i-- > 0;) {
            all[i].batch = i;
            if (all[i].given > 0 && asked != asked_.rend())
                all[i].asked = *asked++;
        }
        return all;
    }

private:
    // Cameras that are not synchronised, their frames evenly apart.
    void start() {
        if (std::exchange(started_, true))
            return;
        const Clock::time_point now = Clock::now();
        for (const auto& camera : cameras_) {
            const double after = paced_ ? static_cast<double>(camera->index) /
                                              (camera->rate * static_cast<double>(cameras_.size()))
                                        : 0;
            camera->begin =
                now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(after));
        }
    }

    static constexpr std::size_t most_asked = 100'000;

    bool paced_;
    bool started_ = false;
    std::size_t turn_ = 0;
    std::deque<double> asked_; // when `next` was called for the last frames
    std::atomic<unsigned> arrivals_{0};
    std::vector<std::unique_ptr<Camera>> cameras_; // outlive the sources' threads
    std::vector<std::unique_ptr<CameraSource>> sources_;
    std::vector<bool> live_;
};

} // namespace live
