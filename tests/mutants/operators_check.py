#!/usr/bin/env python3
"""That operators.py finds what it should in a header of a few lines and nothing else, and that each entry of equivalent.txt holds."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import operators  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

HEADER = r"""
#pragma once // a < b
namespace sluice {
inline constexpr int limit = 3;
template <class T, int N = 4 + 1>
struct Thing {
    int number = 7;
    enum class Kind { a = 1, b = 2 };
    Thing& operator=(Thing&& other) noexcept {
        if (this != &other)
            next_ = std::exchange(other.next_, 0);
        return *this;
    }
    bool ends(const std::vector<int>& of, int i) const {
        static_assert(N < 9, "N < 9");
        if constexpr (N > 4)
            return of[i] < limit && i > -1;
        int table[N + 2];
        const std::array<int, 3> small{};
        if (i == 0)
            throw Error("i == 0, expected more than " + std::to_string(i - 1));
        limit_ = i > limit_ ? i : limit_;
        if (i < least_)
            least_ = i;
        return ready_ ? i + 1 : [this, i](int of) { return of - next_; }(N);
    }
#if SLUICE_HAS_CUDA
    bool on_gpu(int a, int b) const { return a < b; }
#endif
};
template <class T>
requires(sizeof(T) == 4) class Needs {
    int least_ = 3;
};
} // namespace sluice
"""
EXPECTED = [
    "condition this != &other -> !(this != &other)",
    "compare this != &other -> this == &other",
    "assignment next_ = std::exchange(other.next_, 0); -> nothing",
    "exchange std::exchange(other.next_, 0) -> std::decay_t<decltype(other.next_)>(std::move(other.next_))",
    "constant 0 -> 0 + 1",
    "logic of[i] < limit && i > -1 -> of[i] < limit || i > -1",
    "compare of[i] < limit -> of[i] <= limit",
    "index i -> i + 1",
    "compare i > -1 -> i >= -1",
    "constant 1 -> 1 + 1",
    "condition i == 0 -> !(i == 0)",
    "compare i == 0 -> i != 0",
    "constant 0 -> 0 + 1",
    "assignment limit_ = i > limit_ ? i : limit_; -> nothing",
    "condition i > limit_ -> !(i > limit_)",
    "condition i < least_ -> !(i < least_)",
    "assignment least_ = i; -> nothing",
    "condition ready_ -> !(ready_)",
    "arithmetic i + 1 -> i",
    "arithmetic of - next_ -> of + next_",
]


def main():
    wrong = []
    changes = operators.changes_of("thing.hpp", HEADER)
    found = [f"{change.kind} {change.part} -> {' '.join(change.other.split()) or 'nothing'}" for change in changes]
    # A condition and a comparison of the same text are two changes: the wider one is kept.
    expected = [text for text in EXPECTED if text in found or not text.startswith("compare ")]
    wrong += [f"not found: {text}" for text in EXPECTED if text not in found and text in expected]
    wrong += [f"found, and should not be: {text}" for text in found if text not in EXPECTED]
    switched = operators.mutated(HEADER, list(enumerate(changes)))
    if switched.count("\n") != HEADER.count("\n"):
        wrong.append("the switched header has lines elsewhere")
    if any(switched.count(f"keep({number})") == 0 for number in range(len(changes))):
        wrong.append("a change is not switched")
    reasons = operators.read_reasons(ROOT / "tests/mutants/equivalent.txt", wrong)
    for change in operators.all_changes(ROOT / "include/sluice"):
        for reason in reasons:
            reason.used += reason.holds(change)
    wrong += [f"{reason.source}: there is no such change any more: {reason.glob}: {reason.kind} {reason.text}"
              for reason in reasons if not reason.used]
    print("\n".join(wrong) or f"{len(found)} changes as expected, {len(reasons)} reasons hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
