/// \file
/// Names of plans by keys, in a text file: a line for each, `key TAB name`.
#pragma once

#include <map>
#include <string>

namespace nn::detail {

/// Reads the file when it is made, and writes it whole with each new plan. An unreadable line is left out: what is missing
/// is timed again.
class PlanFile {
public:
    /// An empty path keeps plans for this object's life only.
    explicit PlanFile(std::string path);

    /// The name that belongs to `key`, or null.
    const std::string* find(const std::string& key) const;

    /// Throws `sluice::Error` when the file cannot be written.
    void put(const std::string& key, const std::string& name);

private:
    void read();
    void write() const;

    std::string path_;
    std::map<std::string, std::string> names_;
};

} // namespace nn::detail
