/// \file
/// What the network says of frames, and the file of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <common/bad_input.hpp>

namespace live {

struct Class {
    std::size_t number = 0;
    float score = 0; ///< all classes' add up to 1

    friend bool operator==(const Class&, const Class&) = default;
};

/// Of one frame.
struct Result {
    explicit Result(std::size_t classes) : best(classes) {}

    std::size_t camera = 0;
    std::size_t number = 0;
    std::size_t photograph = 0;
    std::chrono::steady_clock::duration age{}; ///< from its capture until the classes were known
    std::vector<Class> best;                   ///< the best first
};

/// Fills `best` with the classes of the greatest logits, of which there are as many or more; of equal ones the first.
inline void find_best(std::span<const float> logits, std::vector<Class>& best) {
    const float greatest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits)
        sum += std::exp(static_cast<double>(logit - greatest));
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best.size()), order.end(),
                      [&](std::size_t a, std::size_t b) {
                          return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
                      });
    for (std::size_t i = 0; i < best.size(); ++i) {
        const double score = std::exp(static_cast<double>(logits[order[i]] - greatest)) / sum;
        best[i] = {order[i], static_cast<float>(score)};
    }
}

/// A line of JSON for each frame, which a reader sees at once. \throws BadInput when it cannot be written
class ResultFile {
public:
    /// Writes to nowhere where `path` is empty.
    explicit ResultFile(const std::string& path) : path_(path) {
        if (!path_.empty()) {
            file_.open(path_);
            require_good();
        }
    }
    /// `schedule` is that of the run which `result` is of.
    void add(const Result& result, const char* schedule) {
        if (path_.empty())
            return;
        file_ << "{\"schedule\": \"" << schedule << "\", \"camera\": " << result.camera
              << ", \"frame\": " << result.number << ", \"best\": [";
        for (std::size_t i = 0; i < result.best.size(); ++i)
            file_ << (i == 0 ? "[" : ", [") << result.best[i].number << ", " << result.best[i].score << ']';
        file_ << "], \"age_ms\": " << std::chrono::duration<double, std::milli>(result.age).count() << "}\n"
              << std::flush;
        require_good();
    }
    void close() {
        if (path_.empty())
            return;
        file_.close();
        require_good();
    }

private:
    void require_good() const {
        if (!file_)
            throw examples::BadInput(path_ + ": the results cannot be written there");
    }

    std::string path_;
    std::ofstream file_;
};

/// The best classes of each photograph when it was first seen: a frame that shows it has the same, bit by bit.
class BestOfPhotographs {
public:
    explicit BestOfPhotographs(std::size_t photographs) : best_(photographs) {}

    bool agrees(const Result& result) {
        std::vector<Class>& known = best_[result.photograph];
        if (known.empty())
            known = result.best;
        return known == result.best;
    }

private:
    std::vector<std::vector<Class>> best_;
};

} // namespace live
