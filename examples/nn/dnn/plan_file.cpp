#include <nn/dnn/detail/plan_file.hpp>

#include <filesystem>
#include <fstream>
#include <utility>

#include <sluice/backend/error.hpp>

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
    // Renamed when it is whole, so that no reader sees a half.
    const std::string part = path_ + ".part";
    {
        std::ofstream file(part, std::ios::trunc);
        for (const auto& [key, name] : names_)
            file << key << '\t' << name << '\n';
        if (!file.flush())
            throw sluice::Error("plan file: " + part + " cannot be written");
    }
    std::error_code error;
    std::filesystem::rename(part, path_, error);
    if (error)
        throw sluice::Error("plan file: " + path_ + " cannot be written: " + error.message());
}

} // namespace nn::detail
