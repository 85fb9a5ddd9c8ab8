// The file format behind safetensors.hpp.
#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <common/bad_input.hpp>
#include <common/files.hpp>
#include <common/safetensors.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000; // the format's own limit
constexpr const char* metadata_name = "__metadata__";

std::string in_quotes(const std::string& name) { return '"' + on_one_line(name) + '"'; }

std::optional<ElementType> type_named(const std::string& name) {
    for (int i = 0; i <= static_cast<int>(ElementType::F64); ++i) {
        if (name_of(static_cast<ElementType>(i)) == name)
            return static_cast<ElementType>(i);
    }
    return std::nullopt;
}

/// A value that must be a whole number of at least zero.
std::size_t whole_number(const Json& value, const std::string& where) {
    if (!value.is_number_unsigned())
        throw BadInput(where + " holds " + value.dump() + "; expected whole numbers");
    return value.get<std::size_t>();
}

struct Entry {
    std::string name;
    Tensor tensor; // without its bytes yet
    std::size_t begin = 0;
    std::size_t end = 0;
};

const Json& member(const Json& object, const char* key, const std::string& where) {
    const auto found = object.find(key);
    if (found == object.end())
        throw BadInput(where + " has no " + key);
    return *found;
}

Entry parse_entry(const std::string& name, const Json& value, const std::string& file) {
    const std::string where = file + ": tensor " + in_quotes(name);
    if (!value.is_object())
        throw BadInput(where + " is described by " + value.dump() + "; expected an object");
    Entry entry{name, {}, 0, 0};

    const Json& dtype = member(value, "dtype", where);
    const std::optional<ElementType> type =
        dtype.is_string() ? type_named(dtype.get<std::string>()) : std::nullopt;
    if (!type)
        throw BadInput(where + " has the unknown dtype " + dtype.dump());
    entry.tensor.type = *type;

    const Json& shape = member(value, "shape", where);
    if (!shape.is_array())
        throw BadInput(where + " has the shape " + shape.dump() + "; expected a list");
    // Sides of zero come last in this reckoning, so that an overflow beside one is still found.
    std::size_t bytes = size_of(*type);
    bool empty = false;
    for (const Json& item : shape) {
        const std::size_t side = whole_number(item, where + ": its shape");
        entry.tensor.shape.push_back(side);
        if (side == 0) {
            empty = true;
        } else if (bytes > std::numeric_limits<std::size_t>::max() / side) {
            throw BadInput(where + " has the shape " + shape.dump() + ", more than memory can hold");
        } else {
            bytes *= side;
        }
    }
    if (empty)
        bytes = 0;

    const Json& offsets = member(value, "data_offsets", where);
    if (!offsets.is_array() || offsets.size() != 2) {
        throw BadInput(where + " has the data_offsets " + offsets.dump() + "; expected two numbers");
    }
    entry.begin = whole_number(offsets[0], where + ": its data_offsets");
    entry.end = whole_number(offsets[1], where + ": its data_offsets");
    if (entry.begin > entry.end)
        throw BadInput(where + " ends before it begins: data_offsets " + offsets.dump());
    if (entry.end - entry.begin != bytes) {
        throw BadInput(where + " takes " + counted(entry.end - entry.begin, "byte") + ", but " +
                       dtype.dump() + " of shape " + shape.dump() + " takes " + with_commas(bytes));
    }
    return entry;
}

/// Parses the header; a name that stands in it twice is an error, which a JSON object alone would hide.
Json parse_header(std::string_view text, const std::string& file) {
    std::set<std::string> seen;
    std::string twice;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::key && depth == 1 &&
            !seen.insert(parsed.get<std::string>()).second) {
            twice = parsed.get<std::string>();
        }
        return true;
    };
    // The parser takes a NUL for the end of the text, and reads nothing behind it.
    if (text.find('\0') != std::string_view::npos)
        throw BadInput(file +
                       ": its header holds a NUL byte, which JSON does not; expected a safetensors file");
    Json header;
    try {
        header = Json::parse(text.begin(), text.end(), watch);
    } catch (const Json::exception&) {
        throw BadInput(file + ": its header is no JSON; expected a safetensors file");
    }
    if (!text.starts_with('{')) // nor may anything stand before it
        throw BadInput(file + ": its header is no JSON object; expected a safetensors file");
    if (!twice.empty())
        throw BadInput(file + ": names " + in_quotes(twice) + " twice");
    return header;
}

void read_metadata(const Json& value, Safetensors& content, const std::string& file) {
    const std::string where = file + ": " + metadata_name;
    if (!value.is_object())
        throw BadInput(where + " is " + value.dump() + "; expected an object of strings");
    for (const auto& [key, item] : value.items()) {
        if (!item.is_string())
            throw BadInput(where + " holds " + item.dump() + "; expected strings");
        content.metadata[key] = item.get<std::string>();
    }
}

/// Tensors must follow one another from the first byte to the last.
void check_order(const std::vector<Entry>& entries, std::size_t available, const std::string& file) {
    std::size_t next = 0;
    const Entry* before = nullptr;
    for (const Entry& entry : entries) {
        const std::string where = file + ": tensor " + in_quotes(entry.name);
        if (entry.end > available) {
            throw BadInput(where + " ends at byte " + with_commas(entry.end) + ", but the file holds " +
                           counted(available, "byte") + " of data");
        }
        if (entry.begin < next)
            throw BadInput(where + " overlaps " + in_quotes(before->name));
        if (entry.begin > next) {
            throw BadInput(file + ": " + counted(entry.begin - next, "byte") + " before tensor " +
                           in_quotes(entry.name) + " belong to no tensor");
        }
        next = entry.end;
        before = &entry;
    }
    if (next != available) {
        throw BadInput(file + ": " + counted(available - next, "byte") +
                       " after the last tensor belong to none");
    }
}

} // namespace

Safetensors parse_safetensors(std::span<const std::uint8_t> bytes, const std::string& name) {
    if (is_gzip(bytes))
        throw BadInput(name + ": is compressed; unpack it with gunzip");
    if (bytes.size() < length_bytes) {
        throw BadInput(name + ": holds " + counted(bytes.size(), "byte") +
                       ", too few for a safetensors file");
    }
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data(), length_bytes);
    const std::span<const std::uint8_t> rest = bytes.subspan(length_bytes);
    if (header_size > rest.size()) {
        throw BadInput(name + ": announces a header of " + counted(header_size, "byte") + ", but holds " +
                       with_commas(rest.size()) + " after its length; expected a safetensors file");
    }
    if (header_size > largest_header) {
        throw BadInput(name + ": announces a header of " + counted(header_size, "byte") +
                       "; expected at most " + with_commas(largest_header) + ", the format's limit");
    }
    const auto header_length = static_cast<std::size_t>(header_size);
    const Json header = parse_header({reinterpret_cast<const char*>(rest.data()), header_length}, name);
    const std::span<const std::uint8_t> data = rest.subspan(header_length);

    Safetensors content;
    std::vector<Entry> entries;
    for (const auto& [key, value] : header.items()) {
        if (key == metadata_name) {
            read_metadata(value, content, name);
        } else {
            entries.push_back(parse_entry(key, value, name));
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    check_order(entries, data.size(), name);
    for (Entry& entry : entries) {
        const auto part = data.subspan(entry.begin, entry.end - entry.begin);
        entry.tensor.bytes.assign(part.begin(), part.end());
        content.tensors.emplace(std::move(entry.name), std::move(entry.tensor));
    }
    return content;
}

Safetensors read_safetensors(const std::filesystem::path& path) {
    return parse_safetensors(
        read_bytes(path, std::numeric_limits<std::uintmax_t>::max(), "a safetensors file"), path.string());
}

std::vector<std::uint8_t> safetensors_bytes(const Safetensors& content) {
    std::vector<std::pair<const std::string*, const Tensor*>> order;
    for (const auto& [name, tensor] : content.tensors) {
        if (name == metadata_name || tensor.bytes.size() != tensor.count() * size_of(tensor.type)) {
            throw std::invalid_argument("tensor " + in_quotes(name) +
                                        " cannot be stored: its bytes do not fit its shape");
        }
        order.emplace_back(&name, &tensor);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return size_of(a.second->type) > size_of(b.second->type);
    });

    Json header = Json::object();
    if (!content.metadata.empty())
        header[metadata_name] = content.metadata;
    std::size_t next = 0;
    for (const auto& [name, tensor] : order) {
        const std::size_t end = next + tensor->bytes.size();
        header[*name] = {
            {"dtype", name_of(tensor->type)}, {"shape", tensor->shape}, {"data_offsets", {next, end}}};
        next = end;
    }
    std::string text = header.dump();
    // Spaces may end the header; with them, the data begins at a multiple of 8.
    text.append((8 - text.size() % 8) % 8, ' ');

    std::vector<std::uint8_t> bytes(length_bytes);
    const std::uint64_t length = text.size();
    std::memcpy(bytes.data(), &length, length_bytes);
    bytes.reserve(length_bytes + text.size() + next);
    bytes.insert(bytes.end(), text.begin(), text.end());
    for (const auto& [name, tensor] : order)
        bytes.insert(bytes.end(), tensor->bytes.begin(), tensor->bytes.end());
    return bytes;
}

void write_safetensors(const Safetensors& content, const std::filesystem::path& path) {
    write_whole_file(path, safetensors_bytes(content));
}

} // namespace examples
