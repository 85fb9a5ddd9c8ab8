// The rectangles and texts of a picture, read back.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/xml.hpp"
#include "support/doctest.hpp"

namespace report_svg {

using namespace sluice::test;

/// A rectangle with a text for the pointer.
struct Box {
    double x, y, width, height;
    std::string css, title;
};

inline std::vector<Box> boxes(const std::vector<Element>& elements) {
    std::vector<Box> found;
    for (const Element& element : elements) {
        const Element& parent = elements[element.parent];
        if (element.name == "title" && parent.name == "rect")
            found.push_back({parent.number("x"), parent.number("y"), parent.number("width"),
                             parent.number("height"), parent.css(), element.text});
    }
    return found;
}

inline std::vector<std::string> texts(const std::vector<Element>& elements, const std::string& css) {
    std::vector<std::string> found;
    for (const Element& element : elements) {
        if (element.name == "text" && element.css() == css)
            found.push_back(element.text);
    }
    return found;
}

/// How many spans the boxes stand for, by their titles.
inline std::size_t spans_in(const std::vector<Box>& all) {
    std::size_t spans = 0;
    for (const Box& box : all) {
        const std::size_t words = box.title.find(" spans: ");
        spans += words == std::string::npos
                     ? 1
                     : std::stoul(box.title.substr(box.title.rfind(' ', words - 1) + 1, words));
    }
    return spans;
}

inline void check_apart(const std::vector<Box>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const Box& a = all[i];
            const Box& b = all[j];
            const bool apart = a.x + a.width <= b.x + 0.011 || b.x + b.width <= a.x + 0.011 ||
                               a.y + a.height <= b.y || b.y + b.height <= a.y;
            if (!apart)
                FAIL(a.title, " covers ", b.title);
        }
    }
}

} // namespace report_svg
