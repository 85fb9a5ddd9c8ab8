/// \file
/// The nodes that a graph is built from by hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/graph_names.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/graph/detail/node_checks.hpp>

namespace sluice {

/// A node of a builder's graph. Copies freely; owns nothing. The types below say what its parameters are, so that
/// new ones are checked when the program is compiled.
template <GraphBackend B>
class BasicNode {
public:
    /// For the `after` of a kernel, where this node is one, too: that kernel may begin while this one ends, by a programmatic edge. It
    /// calls `wait_for_earlier_kernels`, with what that asks of a kernel; this one says when by `let_next_kernel_begin`. CUDA lets a
    /// kernel that is behind a plain edge as well (a copy's, say) begin as usual.
    BasicNode early() const noexcept {
        BasicNode node = *this;
        node.early_ = true;
        return node;
    }

private:
    friend class BasicGraphBuilder<B>;
    friend class BasicBuiltGraphExec<B>;

    BasicNode(typename B::NativeNode native, std::uint64_t builder, std::size_t index) noexcept
        : native_(native), builder_(builder), index_(index) {}

    typename B::NativeNode native_;
    std::uint64_t builder_; // the number of the builder that it belongs to
    std::size_t index_;     // its place there
    bool is_kernel_ = false;
    bool early_ = false; // made by `early`
};

/// Does nothing: a place to meet.
template <GraphBackend B>
class EmptyNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// Copies elements of type `T`, one way.
template <GraphBackend B, class T, CopyKind kind>
class CopyNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// The node that copies a `From` to a `To`: buffers or spans.
template <GraphBackend B, class To, class From>
using CopyNodeOf =
    CopyNode<B, typename detail::CopyTraits<To, From>::Element, detail::CopyTraits<To, From>::kind>;

/// Sets bytes of device memory.
template <GraphBackend B>
class FillNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// Calls host code.
template <GraphBackend B>
class HostNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// Runs a copy of another graph.
template <GraphBackend B>
class ChildNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// Runs one of its bodies, or its body again and again, as a condition says.
template <GraphBackend B>
class ConditionNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
};

/// Launches a kernel whose parameters are `Params`.
template <GraphBackend B, class... Params>
class KernelNode : public BasicNode<B> {
    friend class BasicGraphBuilder<B>;
    friend class BasicBuiltGraphExec<B>;

    KernelNode(BasicNode<B> node, void (*function)(Params...), const KernelDims& dims) noexcept
        : BasicNode<B>(node), function_(function), dims_(dims) {}

    void (*function_)(Params...);
    KernelDims dims_;
};

} // namespace sluice
