/// \file
/// Which stage waits for which: the one list from which every schedule takes its order.
#pragma once

#include <array>
#include <cstddef>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// A relation between the stages of a pipeline: `[i][k]` is between stage i and stage k.
template <std::size_t N>
using StageRelation = std::array<std::array<bool, N>, N>;

/// The waits of a pipeline of N stages, without those that others imply.
///
/// Stage i works on a batch after each stage whose output it reads has done so (`same[i][j]`), and after each reader k
/// of its own output is done with the batch that was in the slot before (`former[i][k]`).
template <std::size_t N>
struct Edges {
    StageRelation<N> same{};
    StageRelation<N> former{};
    /// Whether anybody waits for stage i.
    std::array<bool, N> awaited{};
    /// How many stages must have come first, on the longest way.
    std::array<std::size_t, N> depth{};
};

/// `reads[i][j]`: stage i reads the output of stage j, which comes before it. `unread[i]`: stage i has an output that
/// no stage reads, and so only itself to wait for.
template <std::size_t N>
constexpr Edges<N> make_edges(const StageRelation<N>& reads, const std::array<bool, N>& unread) {
    Edges<N> edges;
    // Whom a stage's own work on a batch comes after: of this batch, and of the one before in the same slots.
    StageRelation<N> after{};
    StageRelation<N> after_former{};
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (!reads[i][j])
                continue;
            after[i][j] = true;
            if (edges.depth[i] < edges.depth[j] + 1)
                edges.depth[i] = edges.depth[j] + 1;
            for (std::size_t k = 0; k < j; ++k)
                after[i][k] = after[i][k] || after[j][k];
        }
    }
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t own = 0; own < N; ++own) {
            if (own != i && !after[i][own])
                continue;
            for (std::size_t reader = 0; reader < N; ++reader) {
                if (!reads[reader][own])
                    continue;
                after_former[i][reader] = true;
                for (std::size_t k = 0; k < N; ++k)
                    after_former[i][k] = after_former[i][k] || after[reader][k];
            }
        }
    }
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            bool same = reads[i][j];
            bool former = reads[j][i];
            for (std::size_t k = 0; k < N; ++k) {
                same = same && !(reads[i][k] && after[k][j]);
                former = former && !(reads[i][k] && after_former[k][j]) && !(reads[k][i] && after[k][j]);
            }
            edges.same[i][j] = same;
            // Of a stage that neither takes nor gives anything, its lanes know nothing of each other.
            edges.former[i][j] = former || (i == j && (unread[i] || !after_former[i][i]));
            edges.awaited[j] = edges.awaited[j] || edges.same[i][j] || edges.former[i][j];
        }
    }
    return edges;
}

} // namespace sluice::detail
