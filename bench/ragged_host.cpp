/// \file
/// Ragged batches on the Host backend. There is no baseline. The times show an order of magnitude, the counts are exact.
#include <sluice/ragged/rows.hpp>

#include "ragged.hpp"

namespace {

using sluice::Host;

class SumSubject {
public:
    SumSubject() : batch_(room), sums_(static_cast<std::size_t>(room.rows)) {
        sluice::RaggedPacker<float, Host> packer(room);
        sluice::CountedRandom random(sluice::RandomKey{.seed = 2});
        std::vector<float> row;
        while (packer.rows() < room.rows) {
            row.resize(random.below(17));
            for (float& value : row)
                value = random.uniform();
            packer.add_row(row);
        }
        packer.copy_to(stream_, batch_);
        stream_.sync();
    }
    void step() { sluice::ragged::sum(stream_, sums_, batch_); }
    void sync() { stream_.sync(); }

private:
    static constexpr sluice::RaggedCapacity room{8192, 16 * 8192};

    sluice::HostStream stream_;
    sluice::RaggedBatch<float, Host> batch_;
    sluice::DeviceBuffer<float, Host> sums_;
};

} // namespace

void bench::add_host_benchmarks() {
    const auto no_baseline = [] { return NoBaseline{}; };
    add_timed(
        "host/rows:8192/sum", {10, 10, 5}, Host::counts(), [] { return SumSubject{}; }, no_baseline);
    add_timed(
        "host/pack:1024", {10, 10, 5}, Host::counts(), [] { return PackSubject<Host>{}; }, no_baseline);
}
