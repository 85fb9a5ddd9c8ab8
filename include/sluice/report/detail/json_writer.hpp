// JSON (RFC 8259), for all that reports write in it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice::detail {

/// Writes objects and arrays on one line, one value after another, with the commas between them.
class JsonWriter {
public:
    /// A number, a string, `true`, `false` or `null`.
    class Value {
    public:
        Value(double number) : text_(number - number == 0 ? numbers::shortest(number) : "null") {}
        Value(std::size_t count) : text_(std::to_string(count)) {}
        Value(bool truth) : text_(truth ? "true" : "false") {}
        Value(std::string_view text) : text_(text), string_(true) {}
        Value(const std::string& text) : text_(text), string_(true) {}
        Value(const char* text) : text_(text), string_(true) {}

        /// A finite number with at most so many decimals.
        static Value rounded(double number, int decimals) {
            return {numbers::trimmed(number, decimals), false};
        }
        static Value null() { return {"null", false}; }

    private:
        friend JsonWriter;
        Value(std::string text, bool string) : text_(std::move(text)), string_(string) {}
        std::string text_;
        bool string_ = false;
    };
    struct Member {
        std::string key;
        Value value;
    };

    void open(char bracket, std::string_view key = {}) {
        name(key);
        text_ += bracket;
    }
    void close(char bracket) { text_ += bracket; }
    void members(std::initializer_list<Member> all) {
        for (const Member& member : all) {
            name(member.key);
            write(member.value);
        }
    }
    /// An object of these members alone.
    void object(std::initializer_list<Member> all, std::string_view key = {}) {
        open('{', key);
        members(all);
        close('}');
    }
    void items(std::initializer_list<Value> all) {
        for (const Value& value : all) {
            name({});
            write(value);
        }
    }
    std::string text() && { return std::move(text_); }

private:
    /// What stands before a value: a comma, where it is not the first, and its key, where it has one.
    void name(std::string_view key) {
        if (!text_.empty() && text_.back() != '{' && text_.back() != '[')
            text_ += ',';
        if (!key.empty()) {
            string(key);
            text_ += ':';
        }
    }
    void write(const Value& value) {
        if (value.string_)
            string(value.text_);
        else
            text_ += value.text_;
    }
    void string(std::string_view value) {
        text_ += '"';
        for (std::size_t at = 0; at < value.size();) {
            const timeline_text::CodePoint point = timeline_text::code_point_at(value, at);
            const std::string_view bytes = value.substr(at, point.bytes);
            if (!point.valid) {
                text_ += timeline_text::replacement_text;
            } else if (point.value < 0x20) {
                text_ += "\\u00";
                text_ += "0123456789abcdef"[point.value >> 4];
                text_ += "0123456789abcdef"[point.value & 0xF];
            } else {
                if (bytes == "\"" || bytes == "\\")
                    text_ += '\\';
                text_ += bytes;
            }
            at += point.bytes;
        }
        text_ += '"';
    }

    std::string text_;
};

} // namespace sluice::detail
