// doctest, with an INFO and a CAPTURE of which a compiler makes two functions a line, in place of eight.
#pragma once

#include <ostream>

#include <doctest/doctest.h>

// What these use of doctest's own is there in all 2.4 since 2.4.9.
#if DOCTEST_VERSION_MAJOR == 2 && DOCTEST_VERSION_MINOR == 4 && DOCTEST_VERSION_PATCH >= 9

namespace sluice::test {

/// As long as it lives, what fails says what `write` writes.
class InfoScope final : public doctest::detail::ContextScopeBase {
public:
    using Write = void (*)(const void* words, std::ostream* to);

    InfoScope(const void* words, Write writer) : words_(words), write_(writer) {}
    ~InfoScope() override {
        if (need_to_destroy)
            destroy(); // writes
    }
    void stringify(std::ostream* to) const override { write_(words_, to); }

    template <class Words>
    static void write(const void* words, std::ostream* to) {
        (*static_cast<const Words*>(words))(to);
    }

private:
    const void* words_;
    Write write_;
};

} // namespace sluice::test

#undef INFO
#undef CAPTURE
#define SLUICE_TEST_INFO(words, scope, to, builder, ...)                                                     \
    const auto words = [&](std::ostream* to) {                                                               \
        doctest::detail::MessageBuilder builder(__FILE__, __LINE__, doctest::assertType::is_warn);           \
        builder.m_stream = to;                                                                               \
        builder* __VA_ARGS__;                                                                                \
    };                                                                                                       \
    const sluice::test::InfoScope scope(&words, &sluice::test::InfoScope::write<decltype(words)>)
#define INFO(...)                                                                                            \
    SLUICE_TEST_INFO(DOCTEST_ANONYMOUS(words_), DOCTEST_ANONYMOUS(scope_), DOCTEST_ANONYMOUS(to_),           \
                     DOCTEST_ANONYMOUS(builder_), __VA_ARGS__)
#define CAPTURE(x) INFO(#x " := ", x)

#endif
