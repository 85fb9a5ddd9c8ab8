// The data of a page, read back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "report/xml.hpp"
#include "support/doctest.hpp"

namespace report_html {

using namespace sluice::test;

/// A JSON value: a number, a string, an array, or an object with its members in order.
struct Json {
    double number = 0;
    std::string text;
    std::vector<Json> items;
    std::vector<std::string> names;

    const Json& at(const std::string& name) const {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (names[i] == name)
                return items[i];
        }
        FAIL("no member ", name);
        return *this;
    }
    const Json& at(std::size_t i) const { return items.at(i); }
};

class JsonReader {
public:
    explicit JsonReader(const std::string& text) : text_(text) {}

    Json read() {
        const Json value = value_here();
        skip();
        REQUIRE(at_ == text_.size());
        return value;
    }

private:
    void skip() { at_ = (std::min)(text_.find_first_not_of(" \n", at_), text_.size()); }
    char next() {
        REQUIRE(at_ < text_.size());
        return text_[at_++];
    }
    bool take(char c) {
        skip();
        const bool here = at_ < text_.size() && text_[at_] == c;
        at_ += here;
        return here;
    }
    void expect(char c) { REQUIRE(take(c)); }

    Json value_here() {
        Json value;
        skip();
        if (text_.compare(at_, 4, "true") == 0 || text_.compare(at_, 5, "false") == 0) {
            value.number = text_[at_] == 't';
            at_ += value.number != 0 ? 4 : 5;
        } else if (take('"')) {
            value.text = string_rest();
        } else if (take('[')) {
            for (bool more = !take(']'); more; more = !closed(']'))
                value.items.push_back(value_here());
        } else if (take('{')) {
            for (bool more = !take('}'); more; more = !closed('}')) {
                expect('"');
                value.names.push_back(string_rest());
                expect(':');
                value.items.push_back(value_here());
            }
        } else {
            const std::size_t end = text_.find_first_not_of("-+e0123456789.", at_);
            REQUIRE(end != at_);
            value.number = std::stod(text_.substr(at_, end - at_));
            at_ = end;
        }
        return value;
    }
    bool closed(char c) {
        if (take(c))
            return true;
        expect(',');
        return false;
    }
    std::string string_rest() {
        std::string out;
        for (char c = next(); c != '"'; c = next()) {
            REQUIRE(static_cast<unsigned char>(c) >= 0x20);
            if (c == '\\') {
                c = next();
                REQUIRE((c == 'u' || c == '"' || c == '\\'));
                if (c == 'u') {
                    c = static_cast<char>(std::stoi(text_.substr(at_, 4), nullptr, 16));
                    at_ += 4;
                }
            }
            out += c;
        }
        return out;
    }

    const std::string& text_;
    std::size_t at_ = 0;
};

/// What stands between `from` and `to` on the page; each must be there.
inline std::string between(const std::string& page, const std::string& from, const std::string& to) {
    const std::size_t begin = page.find(from);
    REQUIRE(begin != std::string::npos);
    const std::size_t end = page.find(to, begin + from.size());
    REQUIRE(end != std::string::npos);
    return page.substr(begin + from.size(), end - begin - from.size());
}

/// The data of the groups of one class.
inline std::vector<Json> data_of(const std::string& page, const std::string& css) {
    std::vector<Json> all;
    const std::string group = "<g class=\"" + css + '"';
    for (std::size_t at = page.find(group); at != std::string::npos; at = page.find(group, at + 1)) {
        const std::string tag = page.substr(at + 2, page.find('>', at) - at - 2);
        const std::string json = attributes_of(tag, 0).at("data-of");
        all.push_back(JsonReader(json).read());
    }
    return all;
}

inline std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

} // namespace report_html
