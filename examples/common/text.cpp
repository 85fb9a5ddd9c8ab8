#include <common/text.hpp>

#include <system_error>

namespace examples {

std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t place = text.size(); place > 3;) {
        place -= 3;
        text.insert(place, 1, ',');
    }
    return text;
}

std::string counted(std::uint64_t number, const std::string& noun) {
    const bool hisses = noun.ends_with('s') || noun.ends_with('x');
    return with_commas(number) + ' ' + noun + (number == 1 ? "" : hisses ? "es" : "s");
}

std::string system_message(int error_number) { return std::generic_category().message(error_number); }

std::string on_one_line(const std::string& text) {
    std::string line;
    line.reserve(text.size());
    for (const char letter : text) {
        if (letter != '\n' && letter != '\r') {
            line += letter;
        } else if (!line.empty() && line.back() != ' ') {
            line += ' ';
        }
    }
    while (!line.empty() && line.back() == ' ')
        line.pop_back();
    return line;
}

} // namespace examples
