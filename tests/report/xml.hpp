// A small reader of XML that fails on what is not well formed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "support/doctest.hpp"

namespace sluice::test {

/// An element that was read.
struct Element {
    std::string name;
    std::map<std::string, std::string> attributes;
    std::string text; ///< What stands directly in it.
    std::size_t parent = 0;

    double number(const std::string& attribute) const { return std::stod(attributes.at(attribute)); }
    std::string css() const { return attributes.count("class") ? attributes.at("class") : ""; }
};

inline std::string unescaped(const std::string& text) {
    static const std::map<std::string, std::string> entities{
        {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"#39", "'"}};
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '&') {
            out += text[at];
            continue;
        }
        const std::size_t end = text.find(';', at);
        REQUIRE(end != std::string::npos);
        const auto entity = entities.find(text.substr(at + 1, end - at - 1));
        REQUIRE(entity != entities.end());
        out += entity->second;
        at = end;
    }
    return out;
}

/// The attributes of a tag, `name="value"` each, from `at` on.
inline std::map<std::string, std::string> attributes_of(const std::string& tag, std::size_t at) {
    std::map<std::string, std::string> found;
    while (at < tag.size() && (at = tag.find_first_not_of(' ', at)) != std::string::npos) {
        const std::size_t equals = tag.find("=\"", at);
        REQUIRE(equals != std::string::npos);
        const std::size_t end = tag.find('"', equals + 2);
        REQUIRE(end != std::string::npos);
        const std::string name = tag.substr(at, equals - at);
        REQUIRE(name.find_first_of(" <>&'") == std::string::npos);
        const bool added = found.emplace(name, unescaped(tag.substr(equals + 2, end - equals - 2))).second;
        REQUIRE(added);
        at = end + 1;
    }
    return found;
}

/// Elements in document order; the first is the root. Fails on what is not well formed.
inline std::vector<Element> parse(const std::string& xml) {
    std::vector<Element> elements;
    std::vector<std::size_t> open;
    std::size_t at = 0;
    while (at < xml.size()) {
        const std::size_t tag = xml.find('<', at);
        const std::string text = unescaped(xml.substr(at, tag == std::string::npos ? tag : tag - at));
        if (open.empty())
            REQUIRE(text.find_first_not_of(" \n") == std::string::npos);
        else
            elements[open.back()].text += text;
        if (tag == std::string::npos)
            break;
        const std::size_t end = xml.find('>', tag);
        REQUIRE(end != std::string::npos);
        std::string inner = xml.substr(tag + 1, end - tag - 1);
        REQUIRE(inner.find('<') == std::string::npos);
        at = end + 1;
        if (inner[0] == '/') {
            REQUIRE_FALSE(open.empty());
            REQUIRE(inner.substr(1) == elements[open.back()].name);
            open.pop_back();
            continue;
        }
        const bool closed = inner.back() == '/';
        if (closed)
            inner.pop_back();
        REQUIRE((!open.empty() || elements.empty())); // one root
        const std::size_t name = inner.find(' ');
        Element element{inner.substr(0, name), {}, {}, open.empty() ? 0 : open.back()};
        if (name != std::string::npos)
            element.attributes = attributes_of(inner, name);
        elements.push_back(element);
        if (!closed)
            open.push_back(elements.size() - 1);
    }
    REQUIRE(open.empty());
    return elements;
}

} // namespace sluice::test
