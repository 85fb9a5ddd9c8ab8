#include <nn/dnn/detail/plan_file.hpp>

#include <fstream>
#include <utility>

#include <sluice/backend/error.hpp>
#include <sluice/report/detail/write_file.hpp>

namespace nn::detail {

PlanFile::PlanFile(std::string path) : path_(std::move(path)) {
    if (!path_.empty())
        read();
}

void PlanFile::read() {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
        const std::size_t tab = line.find('\t');
        if (tab != std::string::npos && tab != 0 && tab + 1 < line.size())
            names_[line.substr(0, tab)] = line.substr(tab + 1);
    }
}

const std::string* PlanFile::find(const std::string& key) const {
    const auto found = names_.find(key);
    return found == names_.end() ? nullptr : &found->second;
}

void PlanFile::put(const std::string& key, const std::string& name) {
    if (key.find_first_of("\t\n") != std::string::npos || name.find_first_of("\t\n") != std::string::npos)
        throw sluice::Error("plan file: a key or a name holds a tab or a line break; expected neither");
    // Another process may have added plans of its own.
    if (!path_.empty())
        read();
    names_[key] = name;
    if (!path_.empty())
        write();
}

void PlanFile::write() const {
    std::string text;
    for (const auto& [key, name] : names_)
        text.append(key).append(1, '\t').append(name).append(1, '\n');
    sluice::detail::drawing::write_file("plan file", path_, text); // no reader sees a half
}

} // namespace nn::detail
