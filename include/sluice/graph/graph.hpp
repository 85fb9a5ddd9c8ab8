/// \file
/// Owners of graphs, and of what runs them.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/graph_names.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

namespace detail {
struct GraphAccess;
}

/// Owns a graph: work and its order, recorded by `capture` or built by hand. Move-only; a moved-from graph owns
/// nothing: it may be assigned to, and every other use throws `Error`.
///
/// Not synchronised. An executable made from it does not need it any longer. backend/graph_names.hpp names it for each
/// backend: `Graph`, `HostGraph`, `CudaGraph`; and so the types that follow it.
template <GraphBackend B>
class BasicGraph {
public:
    /// `cudaGraph_t` on CUDA.
    using Native = typename B::NativeGraph;

    /// An empty one. Throws `Error`.
    BasicGraph() : native_(B::create_graph()) {}

    /// Takes over a native graph, which the result destroys.
    static BasicGraph from_native_handle(Native native) noexcept {
        if (native != Native{})
            B::counts().graphs.adopt();
        return BasicGraph{native};
    }

    /// Takes `other`'s graph over.
    BasicGraph(BasicGraph&& other) noexcept : native_(std::exchange(other.native_, Native{})) {}
    /// Takes `other`'s graph over and destroys the former one.
    BasicGraph& operator=(BasicGraph&& other) noexcept {
        if (this != &other) {
            destroy();
            native_ = std::exchange(other.native_, Native{});
        }
        return *this;
    }
    ~BasicGraph() { destroy(); }

    /// Nodes, those of child graphs included and those of conditional bodies not. Throws `Error`.
    std::size_t nodes() const { return B::node_count(own()); }
    /// Edges between its own nodes. Throws `Error`.
    std::size_t edges() const { return B::edge_count(own()); }
    /// Writes a picture of it to `path`, in Graphviz' DOT language. Throws `Error`.
    void write_dot(const std::string& path) const { B::write_dot(own(), path.c_str()); }
    /// The same.
    void write_dot(const char* path) const {
        B::write_dot(own(), detail::require_text("write_dot: the path", path));
    }

    /// The native graph, which stays this object's; null if it was moved from.
    Native get() const noexcept { return native_; }

    /// Gives the native graph up: the caller destroys it.
    Native release() noexcept {
        if (native_ != Native{})
            B::counts().graphs.remove();
        return std::exchange(native_, Native{});
    }

private:
    friend struct detail::GraphAccess;
    Native own() const { return detail::owned_by("graph", native_); }
    explicit BasicGraph(Native native) noexcept : native_(native) {}
    void destroy() noexcept {
        if (native_ != Native{})
            B::destroy_graph(native_);
    }

    Native native_;
};

/// Owns a graph made ready to run. Move-only; a moved-from executable owns nothing: it may be assigned to, and
/// every other use throws `Error`. No function waits for the work; when it is destroyed, launches in flight complete.
///
/// Belongs to the device that was current when it was made. Not synchronised.
template <GraphBackend B>
class BasicGraphExec {
public:
    /// `cudaGraphExec_t` on CUDA.
    using Native = typename B::NativeGraphExec;

    /// Makes `graph` as it is now ready to run. Throws `Error`.
    explicit BasicGraphExec(const BasicGraph<B>& graph)
        : device_(B::current_device()), native_(B::instantiate(detail::owned_by("graph", graph.get()))) {}

    /// Takes `other`'s executable over.
    BasicGraphExec(BasicGraphExec&& other) noexcept
        : device_(other.device_), native_(std::exchange(other.native_, Native{})) {}
    /// Takes `other`'s executable over and destroys the former one.
    BasicGraphExec& operator=(BasicGraphExec&& other) noexcept {
        if (this != &other) {
            destroy();
            native_ = std::exchange(other.native_, Native{});
            device_ = other.device_;
        }
        return *this;
    }
    ~BasicGraphExec() { destroy(); }

    /// Enqueues the graph's work on `stream`. A launch comes after earlier launches of the same executable, whatever
    /// their streams. Throws `Error`, also for a stream of another device.
    void launch(BasicStreamRef<B> stream) const {
        detail::require_same_device(stream, "launch", "the graph", device_);
        B::launch(own(), stream.get());
    }

    /// Makes later launches do what `graph` says. False, and nothing changes, where it differs in more than
    /// parameters: make a new executable then. Throws `Error`.
    bool update(const BasicGraph<B>& graph) {
        return B::update(own(), detail::owned_by("graph", graph.get()));
    }

    /// Hands it to the device ahead of the first launch, in the order of `stream`. Throws `Error`.
    void upload(BasicStreamRef<B> stream) const {
        detail::require_same_device(stream, "upload", "the graph", device_);
        B::upload(own(), stream.get());
    }

    /// The native executable, which stays this object's; null if it was moved from.
    Native get() const noexcept { return native_; }

private:
    Native own() const { return detail::owned_by("graph executable", native_); }
    void destroy() noexcept {
        if (native_ != Native{})
            B::destroy_graph_exec(native_);
    }

    int device_;
    Native native_;
};

namespace detail {
struct GraphAccess {
    /// The owner of a graph that the backend has just made, and counted.
    template <GraphBackend B>
    static BasicGraph<B> own(typename B::NativeGraph native) noexcept {
        return BasicGraph<B>{native};
    }
};
} // namespace detail

} // namespace sluice
