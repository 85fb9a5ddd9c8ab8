/// \file
/// Numbers and errors as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace examples {

/// `1234567` as "1,234,567".
std::string with_commas(std::uint64_t number);

/// "1 image", "1,500 images", "2 boxes": `number` with commas, then `noun`, with an s or es unless there is one.
std::string counted(std::uint64_t number, const std::string& noun);

/// What the operating system says about an error number, for example "No such file or directory".
std::string system_message(int error_number);

/// `text` with every run of line breaks turned into one space, so that an error stays on one line.
std::string on_one_line(const std::string& text);

} // namespace examples
