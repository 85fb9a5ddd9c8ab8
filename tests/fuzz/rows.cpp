// Ragged rows from offsets, lengths, row ids, padded arrays and masks: what a plain loop makes of them, or an Error and no rows.
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <sluice/backend/host.hpp>
#include <sluice/ragged/convert.hpp>
#include <sluice/ragged/packer.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using namespace sluice;
using sluice::fuzz::Reader;
using Value = std::uint16_t;
using Rows = std::vector<std::vector<Value>>;

const BasicStream<Host>& stream() {
    static const BasicStream<Host> stream = BasicStream<Host>::make_inline();
    return stream;
}

struct Given {
    RaggedCapacity capacity;
    std::vector<Value> values;
    std::int64_t number;                // of rows, or the width
    std::vector<std::int64_t> integers; // offsets, lengths, row ids or a mask
};

Given read_rows(Reader& reader) {
    Given given;
    given.capacity = {reader.byte() % 9, reader.byte() % 40};
    given.number = reader.number();
    given.values.resize(reader.byte() % 48);
    for (std::size_t i = 0; i < given.values.size(); ++i)
        given.values[i] = static_cast<Value>(i * 40503u + 1);
    while (!reader.empty() && given.integers.size() < 64)
        given.integers.push_back(reader.number());
    return given;
}

std::size_t unsigned_of(std::int64_t number) { return static_cast<std::size_t>(number); }

std::optional<Rows> by_offsets(const Given& given) {
    const auto& offsets = given.integers;
    const auto count = static_cast<std::int64_t>(given.values.size());
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != count)
        return std::nullopt;
    Rows rows;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] > count)
            return std::nullopt;
        rows.emplace_back(given.values.begin() + offsets[i], given.values.begin() + offsets[i + 1]);
    }
    return rows;
}
std::optional<Rows> by_lengths(const Given& given) {
    Given offsets = given;
    offsets.integers = {0};
    for (const std::int64_t length : given.integers) {
        if (length < 0 || length > 1000)
            return std::nullopt;
        offsets.integers.push_back(offsets.integers.back() + length);
    }
    return by_offsets(offsets);
}
std::optional<Rows> by_row_ids(const Given& given) {
    if (given.number < 0 || given.integers.size() != given.values.size())
        return std::nullopt;
    if (given.number > given.capacity.rows)
        return std::nullopt; // does not fit, or a row is none
    Rows rows(unsigned_of(given.number));
    std::int64_t former = 0;
    for (std::size_t i = 0; i < given.values.size(); ++i) {
        const std::int64_t row = given.integers[i];
        if (row < former || row >= given.number)
            return std::nullopt;
        rows[unsigned_of(row)].push_back(given.values[i]);
        former = row;
    }
    return rows;
}
std::optional<Rows> by_padded(const Given& given) {
    const std::size_t count = given.integers.size();
    // Of no rows, any width is the width.
    const bool wide = count > 0 && given.number > 1000;
    if (given.number < 0 || wide || count * unsigned_of(given.number) != given.values.size())
        return std::nullopt;
    Rows rows;
    for (std::size_t row = 0; row < count; ++row) {
        if (given.integers[row] < 0 || given.integers[row] > given.number)
            return std::nullopt;
        const auto begin =
            given.values.begin() + static_cast<std::ptrdiff_t>(row * unsigned_of(given.number));
        rows.emplace_back(begin, begin + given.integers[row]);
    }
    return rows;
}
std::optional<Rows> by_mask(const Given& given) {
    if (given.number < 1 || given.integers.size() != given.values.size() ||
        given.values.size() % unsigned_of(given.number) != 0)
        return std::nullopt;
    Rows rows(given.values.size() / unsigned_of(given.number));
    for (std::size_t i = 0; i < given.values.size(); ++i) {
        if (given.integers[i] != 0)
            rows[i / unsigned_of(given.number)].push_back(given.values[i]);
    }
    return rows;
}

bool fits(const Rows& rows, const RaggedCapacity& capacity) {
    std::size_t values = 0;
    for (const auto& row : rows)
        values += row.size();
    return rows.size() <= unsigned_of(capacity.rows) && values <= unsigned_of(capacity.values);
}

// In elements of a type, where all fit.
template <class T>
std::optional<std::vector<T>> as(const std::vector<std::int64_t>& numbers) {
    std::vector<T> result;
    for (const std::int64_t number : numbers) {
        if (!std::in_range<T>(number))
            return std::nullopt;
        result.push_back(static_cast<T>(number));
    }
    return result;
}

/// The numbers as unsigned ones: those below 0 become the largest there are.
std::vector<std::uint64_t> as_unsigned(const std::vector<std::int64_t>& numbers) {
    return {numbers.begin(), numbers.end()};
}

template <class T>
void pack(RaggedPacker<Value, Host>& packer, int way, const Given& given, const std::vector<T>& integers) {
    switch (way) {
    case 0:
        return packer.pack_offsets(given.values, integers);
    case 1:
        return packer.pack(given.values, integers);
    case 2:
        return packer.pack_row_ids(given.values, integers, given.number);
    case 3:
        return packer.pack_padded(given.values, given.number, integers);
    default:
        return packer.pack_masked(given.values, given.number, integers);
    }
}

void check_packed(Reader& reader) {
    const int way = reader.byte() % 5;
    const int type = reader.byte() % 4;
    const Given given = read_rows(reader);
    std::optional<Rows> rows = way == 0   ? by_offsets(given)
                               : way == 1 ? by_lengths(given)
                               : way == 2 ? by_row_ids(given)
                               : way == 3 ? by_padded(given)
                                          : by_mask(given);
    if (rows && !fits(*rows, given.capacity))
        rows = std::nullopt;

    RaggedPacker<Value, Host> packer(given.capacity);
    packer.pack(Rows{}); // what was there before goes
    bool refused = false;
    try {
        const auto bytes = as<std::uint8_t>(given.integers);
        const auto shorts = as<std::int16_t>(given.integers);
        if (type == 1 && bytes)
            pack(packer, way, given, *bytes);
        else if (type == 2 && shorts)
            pack(packer, way, given, *shorts);
        else if (type == 3)
            pack(packer, way, given, as_unsigned(given.integers));
        else
            pack(packer, way, given, given.integers);
    } catch (const Error& error) {
        refused = true;
        const std::string_view text = error.what();
        SLUICE_FUZZ_EXPECT(text.size() > 10);
        // Of numbers without a sign none is named with one.
        SLUICE_FUZZ_EXPECT(type != 3 || given.number < 0 || text.find(" -") == std::string_view::npos);
    }
    SLUICE_FUZZ_EXPECT(refused == !rows);
    const Rows expected = rows ? *rows : Rows{};
    SLUICE_FUZZ_EXPECT(packer.rows() == static_cast<std::int64_t>(expected.size()));
    for (std::size_t row = 0; row < expected.size(); ++row) {
        const auto held = packer.row(static_cast<std::int64_t>(row));
        SLUICE_FUZZ_EXPECT(std::vector<Value>(held.begin(), held.end()) == expected[row]);
    }
    RaggedBatch<Value, Host> batch(given.capacity, stream());
    packer.copy_to(stream(), batch);
    SLUICE_FUZZ_EXPECT(to_lists_and_wait(stream(), batch) == expected);
}

// The same masks, on the device's side.
void check_device_mask(Reader& reader) {
    Given given = read_rows(reader);
    const std::optional<Rows> rows = by_mask(given);
    const bool all_rows = rows && rows->size() <= unsigned_of(given.capacity.rows);
    DeviceBuffer<Value, Host> padded(given.values.size());
    DeviceBuffer<std::uint8_t, Host> mask(given.integers.size());
    for (std::size_t i = 0; i < given.values.size(); ++i)
        padded.data()[i] = given.values[i];
    for (std::size_t i = 0; i < given.integers.size(); ++i)
        mask.data()[i] = given.integers[i] != 0 ? 1 : 0;
    RaggedBatch<Value, Host> out(given.capacity, stream());
    static RaggedWorkspace<Host> workspace({64, 64});
    bool refused = false;
    try {
        ragged::from_padded_mask(stream(), out, padded, given.number, mask, workspace);
    } catch (const Error&) {
        refused = true;
    }
    SLUICE_FUZZ_EXPECT(refused == !all_rows);
    if (refused)
        return;
    if (fits(*rows, given.capacity)) {
        SLUICE_FUZZ_EXPECT(to_lists_and_wait(stream(), out) == *rows);
    } else {
        const RaggedCounts counts = out.counts_and_wait(stream());
        SLUICE_FUZZ_EXPECT(counts.rows == 0 && counts.refused > given.capacity.values);
    }
}

void check_layout(Reader& reader) {
    const RaggedCapacity capacity{reader.number(), reader.number()};
    const std::size_t size = reader.byte() % 64 + std::size_t{1};
    try {
        const RaggedLayout layout = RaggedLayout::of(capacity, size);
        SLUICE_FUZZ_EXPECT(capacity.rows >= 0 && capacity.values >= 0);
        SLUICE_FUZZ_EXPECT(layout.offsets_at < layout.values_at && layout.values_at <= layout.bytes);
        SLUICE_FUZZ_EXPECT((layout.values_at - layout.offsets_at) / sizeof(std::int64_t) >
                           unsigned_of(capacity.rows));
        SLUICE_FUZZ_EXPECT((layout.bytes - layout.values_at) / size >= unsigned_of(capacity.values));
    } catch (const Error&) {
        SLUICE_FUZZ_EXPECT(capacity.rows < 0 || capacity.values < 0 ||
                           capacity.rows > std::int64_t{1} << 40 || capacity.values > std::int64_t{1} << 40);
    }
}

} // namespace

SLUICE_FUZZ_TARGET(rows) {
    Reader reader(input);
    switch (reader.byte() % 4) {
    case 0:
        return check_device_mask(reader);
    case 1:
        return check_layout(reader);
    default:
        return check_packed(reader);
    }
}
