/// \file
/// live_input on the Host backend: a stage sleeps for as long as a GPU's would work. It has no other side: its streams and
/// events are sluice's own.
#include <thread>

#include "pipelines.hpp"

namespace bench::live {

namespace {

class HostEnds final : public Ends {
public:
    void restart(std::size_t most) override {
        ends_.assign(most, {});
        count_ = 0;
    }
    void compare_clocks(bool /*must*/) override {}
    std::vector<End> read() override {
        return {ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(count_)};
    }
    std::size_t memory() override { return 0; }
    std::string precision() const override { return {}; }
    void note(std::uint32_t number) {
        if (count_ < ends_.size())
            ends_[count_++] = {static_cast<double>(now()), number};
    }

private:
    std::vector<End> ends_;
    std::size_t count_ = 0;
};

class HostKit {
public:
    using Backend = sluice::Host;
    using Stream = sluice::HostStreamRef;
    using Data = sluice::DeviceBuffer<std::uint32_t, Backend>;
    static constexpr int burst_steps = 50; // The stages' threads have the caller's cores.

    explicit HostKit(HostEnds& ends) : ends_(&ends) {}
    Data make_data() const { return Data{1}; }
    void grab(Stream stream, const Frame& frame, Data& out) const {
        stream.enqueue([number = frame.number, to = out.data()] { *to = number; });
    }
    void infer(Stream stream, const Data& in) const {
        stream.enqueue([ends = ends_, from = in.data()] {
            std::this_thread::sleep_for(std::chrono::nanoseconds(infer_time));
            ends->note(*from);
        });
    }
    void tiny(Stream stream, std::size_t /*stage*/, bool is_last) const {
        stream.enqueue([ends = ends_, is_last] {
            if (is_last)
                ends->note(0);
        });
    }
    void empty(Stream stream) const {
        stream.enqueue([] {});
    }

private:
    HostEnds* ends_;
};

} // namespace

Rows host_rows() {
    auto ends = std::make_unique<HostEnds>();
    const auto kit = std::make_shared<HostKit>(*ends);
    Rows rows;
    rows.device = "the CPU";
    add_rows(
        kit, rows, [](auto...) { return MakeSubject{}; }, [](auto...) { return MakeSubject{}; });
    rows.bound.push_back(bound_row(kit, "in_flight by default", 0));
    rows.bound.push_back(bound_row(kit, "in_flight 1,000,000", no_bound));
    rows.ends = std::move(ends);
    return rows;
}

} // namespace bench::live
