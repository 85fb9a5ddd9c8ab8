// Whether the program is built with a sanitizer, which multiplies what each step costs.
#pragma once

#if defined(__has_feature)
#define SLUICE_TEST_HAS(feature) __has_feature(feature)
#else
#define SLUICE_TEST_HAS(feature) 0
#endif

namespace sluice::test {

#if defined(__SANITIZE_THREAD__) || SLUICE_TEST_HAS(thread_sanitizer)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || SLUICE_TEST_HAS(address_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = thread_sanitized;
#endif

} // namespace sluice::test

#undef SLUICE_TEST_HAS
