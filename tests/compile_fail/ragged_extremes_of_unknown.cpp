// The greatest values of a type whose least value is unknown.
// FIRST: sluice::ragged: max and min need values that std::numeric_limits knows
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

struct Price {
    int cents;
    friend bool operator>(Price a, Price b) { return a.cents > b.cents; }
    friend bool operator<=(Price a, Price b) { return a.cents <= b.cents; }
};

void use(sluice::HostStreamRef stream, sluice::DeviceBuffer<Price, sluice::Host>& prices,
         sluice::RaggedBatch<Price, sluice::Host>& batch, sluice::DeviceBuffer<int, sluice::Host>& numbers,
         sluice::RaggedBatch<int, sluice::Host>& counts) {
    (void)prices, (void)batch, (void)numbers, (void)counts;
#if MISUSE
    (sluice::ragged::max)(stream, prices, batch);
#else
    (sluice::ragged::max)(stream, numbers, counts);
#endif
}
