// Iterators' concepts and sentinels. libstdc++ has them with <span> too; <iterator> itself adds those of streams, a twentieth of
// what including sluice takes.
#pragma once

#include <span>
#if !defined(__GLIBCXX__)
#include <iterator>
#endif
